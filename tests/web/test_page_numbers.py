"""How numbers are written: units, no-break spaces, dashes, true minus."""

from __future__ import annotations

import numpy as np
import pytest

from app.pages import numbers as n


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (58_700.0, "58.70\u00a0ms"),  # under 100 ms: two decimals
        (174_800.0, "174.8\u00a0ms"),  # from 100 ms on: one
        (12_345_000.0, "12.35\u00a0s"),  # from 10 s on: seconds, half to even of 12.345 is 12.35 in binary64
        (812.0, "812.0\u00a0µs"),
    ],
)
def test_a_step_time_takes_the_unit_of_its_size(us: float, text: str) -> None:
    assert n.unit_for(us).text(us) == text


def test_the_unknown_is_a_dash_and_zero_is_zero() -> None:
    unit = n.unit_for(1e5)
    assert unit.text(None) == "–"
    assert unit.number(0.0) == "0"
    assert n.percent(None) == n.count(None) == n.significant(float("nan")) == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.0041, "0.0041"), (0.005, "0.01"), (12.345, "12.35"), (None, "–"), (-0.0041, "−0.0041")],
)
def test_a_column_keeps_its_decimals_and_loses_nothing(value: float | None, text: str) -> None:
    assert n.column(value) == text


def test_a_time_that_would_vanish_is_less_than_the_last_digit() -> None:
    """1 ns and 49 µs in s with two decimals: under 0.005 s, which alone would be 0.01."""
    seconds = n.unit_for(13.34e6)
    assert [seconds.number(us) for us in (0.001, 4_900.0, 5_000.0, 0.0)] == ["<0.01", "<0.01", "0.01", "0"]
    assert n.unit_for(2e5).text(1.0) == "<0.1\u00a0ms"


def test_thousands_stand_apart_and_minus_is_a_minus() -> None:
    assert n.fixed(1234567.891, 1) == "1\u202f234\u202f567.9"
    assert n.fixed(-12.3, 1) == "−12.3"
    assert n.fixed(-0.004, 2) == "0.00"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.4, "<1"), (0.94, "<1"), (0.96, "1"), (33.6, "34"), (143.2, "143")]
)
def test_a_share_under_one_percent_is_not_nothing(value: float, text: str) -> None:
    assert n.percent(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (0.04, "<0.1"), (0.06, "0.1"), (96.54, "96.5")])
def test_a_share_with_a_decimal_is_not_nothing(value: float, text: str) -> None:
    assert n.percent(value, 1) == text


def test_a_difference_says_its_direction() -> None:
    assert [n.signed_percent(v) for v in (3.4, -7.0, 0.2, None)] == ["+3", "−7", "0", "–"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00412, "0.00412"),
        (118.4, "118"),
        (2e6, "2\u202f000\u202f000"),
        (15.43, "15.4"),
        (989.5, "990"),
        (0.0, "0"),
    ],
)
def test_three_digits_without_an_exponent(value: float, text: str) -> None:
    assert n.significant(value) == text


def test_rates_take_a_prefix() -> None:
    assert n.rate(15.7e12, "FLOP/s") == "15.7\u00a0TFLOP/s"
    assert n.rate(814e9, "B/s") == "814\u00a0GB/s"
    assert (
        n.pair_of_rates(814e9, 3.35e12, "B/s") == "0.814 of 3.35\u00a0TB/s"
    )  # both in the unit of the larger
    assert n.pair_of_rates(120e9, None, "FLOP/s") == "120\u00a0GFLOP/s"
    assert n.size(1_159_569) == "1.16\u00a0MB"


@pytest.mark.parametrize("q", [0, 25, 50, 95, 99, 100])
def test_percentiles_are_numpys(q: float) -> None:
    values = [176.078, 173.992, 176.918, 181.3, 176.5, 164.3]
    assert n.percentile(values, q) == pytest.approx(np.percentile(values, q), abs=1e-9)
    assert n.percentile([], q) is None
