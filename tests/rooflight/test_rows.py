"""Figures of a row against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.results.rows import BINS, Work, percentile, table_row

durations = st.lists(st.integers(0, 10**12), min_size=1, max_size=40).map(sorted)


@given(durations, st.integers(0, 100))
def test_percentiles_are_numpys(values: list[int], p: int) -> None:
    assert percentile(np.array(values), p) == pytest.approx(float(np.percentile(values, p)), rel=1e-12)


@given(durations)
def test_a_histogram_counts_every_launch_once(values: list[int]) -> None:
    row = table_row(np.array(values), sum(values) or 1, Work(None, None, None, None, 1.0, None))
    assert (row.min_us, row.max_us, row.count) == (values[0] / 1000, values[-1] / 1000, len(values))
    if values[0] == values[-1]:
        assert row.histogram == []
    else:
        assert sum(row.histogram) == len(values)
        assert len(row.histogram) == BINS
        assert row.histogram[0] >= 1
        assert row.histogram[-1] >= 1


def test_rates_are_totals_over_the_total_time() -> None:
    """3 launches of 100 µs: 6e9 FLOPs are 20 TFLOP/s, 3e8 bytes are 1000 GB/s; a bound of 60 µs is 0.6."""
    row = table_row(
        np.array([100_000] * 3), 600_000, Work(6 * 10**9, 3 * 10**8, 60_000.0, 180_000.0, 100_000.0, 20.0)
    )
    assert (row.achieved_tflops, row.achieved_gbs) == (20, 1000)
    assert (row.roof_fraction, row.bound_us, row.share_pct) == (0.6, 180, 50)


def test_a_rate_keeps_its_digits() -> None:
    """2 x 64 x 1024 x 4096 = 536870912 FLOPs in 10 us are 53.6870912 TFLOP/s."""
    row = table_row(np.array([10_000]), 10_000, Work(536_870_912, None, None, None, 10_000.0, None))
    assert row.achieved_tflops == 53.6870912
