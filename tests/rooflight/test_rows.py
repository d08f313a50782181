"""Figures of a row against numpy's own."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.results.rows import BINS, Spread, Work, percentile, spreads, table_row

durations = st.lists(st.integers(0, 10**12), min_size=1, max_size=40).map(sorted)


def spread(*values: int) -> Spread:
    [found] = spreads([np.array(values)])
    return found


@given(durations, st.integers(0, 100))
def test_percentiles_are_numpys(values: list[int], p: int) -> None:
    assert percentile(values, p) == pytest.approx(float(np.percentile(values, p)), rel=1e-12)


@given(st.lists(durations, max_size=5))
def test_each_row_has_the_percentiles_of_its_own_launches(rows: list[list[int]]) -> None:
    """To the nearest ns: the middle of 1 and 2 ns is 1.5, of which the even neighbour is 2."""
    assert spread(1, 2).p50_us == 0.002
    for s, values in zip(spreads([np.array(v) for v in rows]), rows, strict=True):
        assert (s.count, s.time_ns) == (len(values), sum(values))
        told = [round(1000 * us) for us in (s.min_us, s.p50_us, s.p95_us, s.p99_us, s.max_us)]
        assert told == [round(_exact(values, p)) for p in (0, 50, 95, 99, 100)]


def _exact(values: list[int], p: int) -> Fraction:
    at = Fraction((len(values) - 1) * p, 100)
    low, high = values[floor(at)], values[ceil(at)]
    return low + (high - low) * (at - floor(at))


@given(durations)
def test_a_histogram_counts_every_launch_once(values: list[int]) -> None:
    histogram = spread(*values).histogram
    if values[0] == values[-1]:
        assert histogram == []
    else:
        assert sum(histogram) == len(values)
        assert len(histogram) == BINS
        assert histogram[0] >= 1
        assert histogram[-1] >= 1


def test_bins_are_as_wide_as_a_twelfth_of_the_spread() -> None:
    """From 100 to 124 a bin is 2 wide: 101 is in the first, 102 in the second, 124 in the last."""
    assert spread(100, 101, 102, 123, 124).histogram == [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]


def test_rates_are_totals_over_the_total_time() -> None:
    """3 launches of 100 µs: 6e9 FLOPs are 20 TFLOP/s, 3e8 bytes are 1000 GB/s; a bound of 60 µs is 0.6."""
    row = table_row(
        spread(*[100_000] * 3), 600_000, Work(6 * 10**9, 3 * 10**8, 60_000.0, 180_000.0, 100_000.0, 20.0)
    )
    assert (row.achieved_tflops, row.achieved_gbs) == (20, 1000)
    assert (row.roof_fraction, row.bound_us, row.share_pct) == (0.6, 180, 50)


def test_a_rate_keeps_its_digits() -> None:
    """2 x 64 x 1024 x 4096 = 536870912 FLOPs in 10 us are 53.6870912 TFLOP/s."""
    row = table_row(spread(10_000), 10_000, Work(536_870_912, None, None, None, 10_000.0, None))
    assert row.achieved_tflops == 53.6870912
