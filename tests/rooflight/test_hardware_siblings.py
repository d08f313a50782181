"""Devices of one model beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.calibration import Calibration
from rooflight.hardware.siblings import behind, figures, latest


def a10(uuid: str, stream: float, **values: Any) -> Calibration:
    given = {"measured_at": "2026-12-01T10:00:00Z", "host": "lab1", "spread_pct": {"stream": 1.0}, **values}
    return Calibration("NVIDIA A10", "gpu", uuid=uuid, stream_gbs=stream, **given)


def test_the_slow_one_is_named_with_the_median_of_the_others() -> None:
    """500, 510, 520 beside 450: their median is 510, and 1 - 450/510 = 2/17 = 11.76 %.  The others are
    at most 1 - 500/510 = 2 % below the median of theirs."""
    [found] = behind([a10("a", 500), a10("b", 510), a10("c", 520), a10("d", 450)])
    assert (found.uuid, found.figure, found.value, found.median) == ("d", "stream", 450, 510)
    assert found.behind_pct == pytest.approx(200 / 17)
    assert (found.allowed_pct, found.siblings) == (5.0, 3)


def test_five_percent_are_no_fault() -> None:
    """475 of 500 is 5 % below."""
    assert behind([a10("a", 500), a10("b", 475)]) == []
    [found] = behind([a10("a", 500), a10("b", 474)])
    assert found.uuid == "b"


@pytest.mark.parametrize(("own", "theirs"), [(4.0, 1.0), (1.0, 4.0)])
def test_what_scatters_is_allowed_three_spreads(own: float, theirs: float) -> None:
    """3 x 4 % are 12 %, whoever scatters: 445 of 500 is 11 % below, 435 is 13 %."""
    sibling = a10("a", 500, spread_pct={"stream": theirs})
    assert behind([sibling, a10("b", 445, spread_pct={"stream": own})]) == []
    [found] = behind([sibling, a10("b", 435, spread_pct={"stream": own})])
    assert found.allowed_pct == 12.0


def test_the_newest_of_a_device_counts() -> None:
    healed = a10("b", 500, measured_at="2026-12-02T10:00:00Z")
    assert behind([healed, a10("a", 500), a10("b", 300)]) == []
    assert list(latest([healed, a10("b", 300)]).values()) == [healed]


def test_another_model_is_no_sibling_and_another_spelling_is() -> None:
    other = Calibration("NVIDIA H100", "gpu", "2026-12-01T10:00:00Z", stream_gbs=2000.0, uuid="h")
    assert behind([a10("a", 500), other]) == []
    spelled = a10("b", 400)
    spelled.device = "nvidia  a10"
    assert [b.uuid for b in behind([a10("a", 500), spelled])] == ["b"]


def test_half_the_threads_are_another_cpu() -> None:
    def cpu(host: str, threads: str, stream: float) -> Calibration:
        conditions = {"threads": threads}
        return Calibration(
            "EPYC", "cpu", "2026-12-01T10:00:00Z", stream_gbs=stream, host=host, conditions=conditions
        )

    assert behind([cpu("lab1", "64", 400), cpu("lab1", "32", 200)]) == []
    assert [b.host for b in behind([cpu("lab1", "64", 400), cpu("lab2", "64", 200)])] == ["lab2"]


def test_every_rate_is_compared_farthest_first() -> None:
    """h2d at half is 50 % behind, bf16 at 0.9 10 %; a copy from the host is h2d, and told once.  A figure
    that the other lacks is not behind."""
    good = a10("a", 500, gemm_tflops={"bf16": 100.0}, copy_gbs=24.0, link_gbs={"h2d": 24.0, "d2h": 24.0})
    bad = a10(
        "b", 500, gemm_tflops={"bf16": 90.0, "fp8": 1.0}, copy_gbs=12.0, link_gbs={"h2d": 12.0, "d2h": 24.0}
    )
    assert [(b.figure, round(b.behind_pct, 6)) for b in behind([good, bad])] == [
        ("h2d", 50),
        ("gemm_bf16", 10),
    ]


def test_figures_that_are_not_known_are_left_out() -> None:
    bare = Calibration("EPYC", "cpu", "2026-12-01T10:00:00Z", copy_gbs=30.0, streams_gbs={"read": 40.0})
    assert figures(bare) == {"copy": 30.0, "read": 40.0}
    assert behind([]) == behind([bare]) == []
