"""Decimal microseconds to nanoseconds."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.readers.number import NeedsText, column, exact


@given(st.lists(st.integers(0, 8_796_093_022_207_999), min_size=1, max_size=20))
def test_three_decimals_are_exact_below_2_to_the_43(ns: list[int]) -> None:
    """2^43 µs is 8.796e15 ns; the float of each text is within half a nanosecond of it."""
    us = [float(f"{n // 1000}.{n % 1000:03}") for n in ns]
    assert column(us).tolist() == ns


@given(st.integers(-(10**15), 10**15))
def test_whole_microseconds_are_exact(us: int) -> None:
    assert column([us]).tolist() == [us * 1000]


@pytest.mark.parametrize("value", [1.76e15 + 0.25, float("nan"), "12.5", None, 0.0005, 120.0035])
def test_doubtful_values_ask_for_their_text(value: object) -> None:
    with pytest.raises(NeedsText):
        column([1.0, value])


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1764500000123456.789", 1_764_500_000_123_456_789),
        ("0.0005", 0),  # half a nanosecond to even
        ("0.0015", 2),
        ("0.0025", 2),
        (" 12.5 ", 12_500),
        ("-1.001", -1_001),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        (Decimal("1e999999999"), None),  # beyond the exponents of decimal arithmetic
        ("-1e999999999", None),
        ("9" * 100_000, None),
        ("1e-999999999", 0),
        ("ten", None),
        (None, None),
        (True, None),
        (Decimal("2.5"), 2_500),
    ],
)
def test_text_is_converted_digit_by_digit(text: object, ns: int | None) -> None:
    assert exact(text) == ns


def test_an_empty_column_is_empty() -> None:
    assert column([]).dtype == np.int64
