"""Units at the borders: what is printed is the nearest nanosecond, never the one below."""

from __future__ import annotations

import numpy as np
import pytest

from rooflight.units import pct, us


@pytest.mark.parametrize(
    ("ns", "printed"),
    [
        (26_349.999999999993, 26.35),  # numpy's percentile of whole ns, a hair under
        (1_829.6, 1.83),
        (1_829.4, 1.829),
        (np.float64(999.5000001), 1.0),
        (5_000, 5.0),
        (-850_000, -850.0),
    ],
)
def test_ns_become_us_of_the_nearest_ns(ns: float, printed: float) -> None:
    assert us(ns) == printed


def test_a_share_of_nothing_is_unknown() -> None:
    assert pct(0, 0) is None
    assert pct(1, 8) == 12.5


@pytest.mark.parametrize("n", [0, 1, -1, 999, 1_005, 2**50 - 1, 2**50, 2**50 + 1, 2**53 + 2, -(2**50) - 1])
def test_microseconds_are_the_double_nearest_to_three_decimals(n: int) -> None:
    """The decimal is n with its point three places to the left, whatever its size."""
    sign, digits = "-" if n < 0 else "", f"{abs(n):04d}"
    nearest = float(f"{sign}{digits[:-3]}.{digits[-3:]}")
    assert us(n) == round(nearest, 3)
