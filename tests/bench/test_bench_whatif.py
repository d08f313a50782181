"""bench/whatif.py: its sums, its errors, and that what-if stays within the bars that were set for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import median

import pytest

from bench.whatif import GPUS, Family, Pair, error, lines, pairs, summary
from rooflight.scenarios import KernelForecast, Range
from tests.shared import traces_dir


@cache
def found() -> list[Pair]:
    return list(pairs(traces_dir() / "pairs"))


@pytest.mark.traces
def test_sums_of_kernel_time_are_predicted_well_enough() -> None:
    """At least 5 of 6 measured sums lie in a range no wider than 2.5; the median error is within 25 %."""
    sums = [p.total for p in found()]
    inside = [s.predicted.low <= s.measured <= s.predicted.high <= 2.5 * s.predicted.low for s in sums]
    assert len(sums) == 6
    assert sum(inside) >= 5
    assert median(abs(s.predicted.mid / s.measured - 1) for s in sums) <= 0.25


def without(p: Pair, family: str) -> Family:
    return Pair(p.title, {name: f for name, f in p.families.items() if name != family}).total


@pytest.mark.traces
def test_the_page_says_how_far_off_it_is() -> None:
    """Also without any one of the families that ran on both."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "whatif.md").read_text("utf-8").split())
    errors = sorted(off(p.total) for p in found())
    assert f"of the middle is {median(errors):.0f} %, the largest {errors[-1]:.0f} %" in page
    assert f"kept their time it would be {kept(found()):.0f} %" in page
    both = [without(p, name) for p in found() for name, f in p.families.items() if f.recorded and f.measured]
    inside = [s.predicted.low <= s.measured <= s.predicted.high <= 2.5 * s.predicted.low for s in both]
    assert all(inside)
    assert f"families {sum(inside)} of {len(both)} sums are inside" in page
    assert f"with a median error of {median([off(s) for s in both]):.0f} %" in page


def off(s: Family) -> float:
    return 100 * abs(s.predicted.mid / s.measured - 1)


def kept(of: list[Pair]) -> float:
    return median([100 * abs(p.total.kept / p.total.measured - 1) for p in of])


@pytest.mark.traces
def test_every_pair_is_printed_in_both_directions_and_by_family() -> None:
    assert len({p.title.partition("  ")[0] for p in found()}) == len(GPUS)
    assert all({"gemm", "elementwise", "attention_fwd"} <= set(p.families) for p in found())


def forecast(time: float, mid: float, basis: str) -> KernelForecast:
    r = Range(mid / 2, mid, mid * 2)
    return KernelForecast(
        "k", "k", None, "gemm", None, "0", "kernel", 1, "latency", time, r, None, basis, True
    )


def test_a_line_for_each_family_and_their_sum() -> None:
    gemm, norm = Family(measured=50.0), Family(measured=10.0)
    gemm.add(forecast(30.0, 40.0, "latency"))
    gemm.add(forecast(20.0, 20.0, "roof"))
    norm.add(forecast(4.0, 4.0, "tiny"))
    p = Pair("x → y", {"norm": norm, "gemm": gemm})
    title, head, *rows = lines(p)
    assert (title, head.split()[0]) == ("x → y", "family")
    # gemm: 30 + 20 recorded, 40 + 20 predicted, half and double; 60/50 is 20 % too much.
    assert rows[0].split() == ["gemm", "50.0", "30.0", "60.0", "120.0", "50.0", "+20", "%"]
    # norm: 4 of 10, whose range ends at 8.
    assert rows[1].split() == ["norm", "4.0", "2.0", "4.0", "8.0", "10.0", "-60", "%", "outside"]
    assert rows[2].split() == ["all", "54.0", "32.0", "64.0", "128.0", "60.0", "+7", "%"]
    # Kept: 30 + 20 + 4 = 54 of 60 is 10 % off; 64 of 60 is 7 %.  The range is 4 wide, so none counts.
    assert summary([p]) == (
        "0 of 1 inside a range no wider than 2.5; median error 7 %"
        " (10 % with the time of kernels that no roof holds kept)"
    )


def test_what_ran_on_one_side_only_has_no_error() -> None:
    assert error(0.0, 4.0).strip() == error(4.0, 0.0).strip() == "–"
