"""Windows over samples: unknown values are left out, energy never goes backwards."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent.commands.run import add_telemetry
from agent.counters import MOST_FLAGS, MOST_PROCESSES, Windows
from agent.device import Device
from agent.sampler.sample import DeviceSample, Process
from agent.sampler.thread import Sampling
from agent.sampler.values import is_blank
from rooflight.protocol import Document, Rank, Step


def window(*samples: DeviceSample) -> dict[str, object]:
    windows = Windows()
    for sample in samples:
        windows.add([sample])
    [only] = windows.take()
    return only


def at(t: float, **values: object) -> DeviceSample:
    return DeviceSample("GPU-1", t, 0, **values)  # type: ignore[arg-type]


def test_the_mean_is_over_the_known_values() -> None:
    got = window(at(0, power_w=300.0), at(10), at(20, power_w=310.0))
    assert got["power_w"] == {"min": 300.0, "mean": 305.0, "max": 310.0, "last": 310.0}
    assert (got["t_start"], got["t_end"], got["samples"]) == (0, 20, 3)


def test_a_field_that_was_never_known_has_no_window_and_a_true_zero_has_one() -> None:
    got = window(at(0, util_pct=0), at(1, util_pct=0))
    assert got["util_pct"] == {"min": 0, "mean": 0.0, "max": 0, "last": 0}
    assert got["temp_c"] is None


def test_energy_is_the_difference_of_the_counter() -> None:
    # (9000 - 5000) mJ
    got = window(at(0, energy_mj=5000), at(1, energy_mj=6500), at(2, energy_mj=9000))
    assert got["energy_j"] == pytest.approx(4.0)
    assert got["flags"] == []


def test_without_a_counter_energy_is_the_trapezoid_of_the_power() -> None:
    # (100 + 200) / 2 x 2 s + (200 + 400) / 2 x 1 s
    got = window(at(0, power_w=100.0), at(2, power_w=200.0), at(3, power_w=400.0))
    assert got["energy_j"] == pytest.approx(600.0)
    assert [f["code"] for f in got["flags"]] == ["energy_estimated"]  # type: ignore[attr-defined]


def test_a_counter_that_went_backwards_is_a_gap() -> None:
    # 1 J before the driver was loaded anew, 2 J after
    got = window(at(0, energy_mj=8000), at(1, energy_mj=9000), at(2, energy_mj=100), at(3, energy_mj=2100))
    assert got["energy_j"] == pytest.approx(3.0)
    assert got["flags"] == [{"code": "energy_gap", "count": 1, "detail": "intervals without an energy"}]


def test_energy_that_nothing_tells_is_unknown() -> None:
    assert window(at(0), at(1))["energy_j"] is None


def test_what_only_some_devices_have_is_left_out_where_it_is_unknown() -> None:
    got = window(at(0, nvlink_tx_bytes_per_s=100), at(1, nvlink_tx_bytes_per_s=300))
    assert got["nvlink_tx_bytes_per_s"] == {"min": 100, "mean": 200.0, "max": 300, "last": 300}
    assert "pcie_tx_bytes_per_s" not in got


def test_throttling_is_told_in_words() -> None:
    got = window(at(0, throttle=0x4), at(1, throttle=0x40 | 0x800))
    assert got["throttle_reasons"] == 0x844
    assert got["throttled_by"] == ["power cap", "thermal slowdown by the hardware", "0x800"]
    assert (window(at(0, throttle=0))["throttled_by"], window(at(0))["throttled_by"]) == ([], None)


def test_processes_of_a_window_are_told_apart_by_start_and_bounded() -> None:
    def running(*rows: tuple[int, float, int]) -> list[Process]:
        return [Process(pid, mem=mem, started=started) for pid, started, mem in rows]

    got = window(
        at(0, processes=running((7, 1.0, 50), (8, 1.0, 10))),
        at(1, processes=running((7, 1.0, 20), (8, 2.0, 30))),
    )
    rows: Any = got["processes"]
    assert [(p["pid"], p["started"], p["mem"]) for p in rows] == [(7, 1.0, 50), (8, 2.0, 30), (8, 1.0, 10)]
    many = window(*(at(t, processes=running(*((p, 1.0, p + 100 * t) for p in range(100)))) for t in range(3)))
    kept: Any = many["processes"]
    assert [p["mem"] for p in kept] == [200 + p for p in range(99, 99 - MOST_PROCESSES, -1)]
    assert "processes" not in window(at(0))


def test_flags_of_a_window_are_bounded() -> None:
    samples = [at(t) for t in range(3 * MOST_FLAGS)]
    for t, sample in enumerate(samples):
        sample.flag("out_of_range", f"utilisation (device 0): {101 + t}")
    flags: Any = window(*samples)["flags"]
    assert len([f for f in flags if f["code"] == "out_of_range"]) == MOST_FLAGS


def test_devices_have_windows_of_their_own_and_the_next_window_starts_anew() -> None:
    windows = Windows()
    windows.add([DeviceSample("GPU-1", 0.0, 0, util_pct=10.0), DeviceSample("GPU-2", 0.0, 1, util_pct=90.0)])
    assert [w["util_pct"]["mean"] for w in windows.take()] == [10.0, 90.0]
    assert windows.take() == []


@pytest.mark.parametrize(
    ("value", "narrow", "blank"),
    [
        (2147483631, True, False),
        (2147483632, True, True),
        (2147483647, True, True),
        (2147483648, True, False),
        (2147483640, False, False),  # two gigabytes are a size
        (4294967295, True, True),
        (4294967295, False, False),
        (9223372036854775792, False, True),
        (9223372036854775807, False, True),
        (18446744073709551615, False, True),
        (140737488355328.0, False, True),
        (140737488355344.0, False, False),
        (float("nan"), False, True),
        (0, True, False),
    ],
)
def test_blank_values(value: float, narrow: bool, blank: bool) -> None:
    assert is_blank(value, narrow=narrow) is blank


class Steady:
    """A source whose only device draws 100 W."""

    def __init__(self) -> None:
        self.closed = False

    def sample(self, t: float) -> list[DeviceSample]:
        return [at(t, power_w=100.0)]

    def close(self) -> None:
        self.closed = True


def test_sampling_covers_a_run_shorter_than_its_interval() -> None:
    source = Steady()
    with Sampling(interval_s=60, source=source) as sampling:
        time.sleep(0.05)
    telemetry = sampling.telemetry("GPU-1")
    [got] = telemetry["windows"]
    assert got["samples"] == 2
    assert got["t_end"] - got["t_start"] >= 0.05
    assert got["energy_j"] == pytest.approx(100 * (got["t_end"] - got["t_start"]))
    assert source.closed
    assert (telemetry["device_uuid"], telemetry["flags"], telemetry["statement"]) == ("GPU-1", [], None)


@pytest.mark.parametrize("uuid", [None, "GPU-2"])
def test_a_device_is_joined_by_uuid_or_not_at_all(uuid: str | None) -> None:
    with Sampling(interval_s=60, source=Steady()) as sampling:
        pass
    telemetry = sampling.telemetry(uuid)
    assert telemetry["device_uuid"] is None
    assert [f["code"] for f in telemetry["flags"]] == ["device_unmatched"]


@pytest.mark.parametrize(("uuid", "joined"), [("GPU-1", True), ("GPU-2", False), (None, False)])
def test_the_energy_of_the_steps_is_joined_by_uuid_alone(uuid: str | None, joined: bool) -> None:
    """The sampled device, GPU-1, draws 100 W all the time."""
    with Sampling(interval_s=0.02, source=Steady()) as sampling:
        began = time.time_ns()
        time.sleep(0.3)
        us = (time.time_ns() - began) / 1000
        time.sleep(0.05)
    rank = Rank(rank=0, grade="complete", clock_base_ns=str(began))
    rank.steps = [Step(n=0, step_time_us=us, start_us=0.0)]
    document = Document(1, "x", [rank])
    add_telemetry(document, Device("gpu", "cuda:0", "NVIDIA H100", "h", 1, uuid, 0), sampling)
    if not joined:
        assert rank.energy is None
        assert [f["code"] for f in (document.telemetry or {})["flags"]] == ["device_unmatched"]
        return
    assert rank.energy is not None
    assert rank.energy.energy_j == pytest.approx(100 * us / 1e6)
    assert [f.code for f in rank.energy.flags] == ["energy_estimated"]
