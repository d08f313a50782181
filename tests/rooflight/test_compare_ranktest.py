"""The rank test, against counts by hand and against counting all arrangements."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.comparison import ranktest
from rooflight.comparison.ranktest import least_p, p_value, shift

VALUES = st.lists(st.integers(-30, 30), min_size=1, max_size=6)


def all_arrangements(a: list[int], b: list[int]) -> float:
    """p by its definition: how often a choice of len(a) of all steps wins as unevenly as A does.  A win of a
    pair counts two, a tie one, so that the middle is len(a) x len(b)."""
    both = a + b

    def away(chosen: tuple[int, ...]) -> int:
        mine = [both[i] for i in chosen]
        theirs = [both[i] for i in range(len(both)) if i not in chosen]
        wins = sum(2 * (x > y) + (x == y) for x in mine for y in theirs)
        return abs(wins - len(a) * len(b))

    observed = away(tuple(range(len(a))))
    choices = list(combinations(range(len(both)), len(a)))
    return sum(away(c) >= observed for c in choices) / len(choices)


def test_steps_that_do_not_overlap_have_the_least_p():
    """Of C(6, 3) = 20 ways to choose A's three, one is all below and one all above: 2 / 20."""
    assert p_value([1, 2, 3], [4, 5, 6]) == pytest.approx(0.1)
    assert least_p(3, 3) == pytest.approx(0.1)
    assert p_value(list(range(6)), list(range(10, 16))) == pytest.approx(2 / 924)  # C(12, 6) = 924


def test_one_pair_the_other_way_round():
    """A = 1 2 4, B = 3 5 6: one pair is reversed.  As uneven or more: 0 or 1 pairs reversed, or 8 or 9:
    1 + 1 + 1 + 1 of 20."""
    assert p_value([1, 2, 4], [3, 5, 6]) == pytest.approx(0.2)


def test_equal_steps_are_no_difference():
    assert p_value([5, 5, 5], [5, 5, 5]) == 1
    assert p_value([5] * 40, [5] * 40) == 1, "nor by the normal approximation, which has no variance then"


@given(VALUES, VALUES)
@settings(max_examples=150)
def test_p_is_the_share_of_all_arrangements_with_ties_too(a: list[int], b: list[int]):
    assert p_value(a, b) == pytest.approx(all_arrangements(a, b))
    assert p_value(a, b) == p_value(b, a)


def test_the_normal_approximation_meets_the_count(monkeypatch: pytest.MonkeyPatch):
    """At 25 and 25 steps both are there, and differ by little more than a thousandth, with ties as well."""
    a, b = [7 * i % 50 for i in range(25)], [(11 * i % 50) + 9 for i in range(25)]
    exact = p_value(a, b)
    monkeypatch.setattr(ranktest, "EXACT", 0)
    assert 0.01 < exact < 0.2
    assert p_value(a, b) == pytest.approx(exact, abs=0.002)


def test_the_normal_approximation_by_hand(monkeypatch: pytest.MonkeyPatch):
    """1 2 3 and 4 5 6: no pair reversed, 4.5 from the middle, 4 after the correction for continuity; variance
    9 / 12 x 7 = 5.25, z = 1.7457, p = 0.0809.  1 1 2 and 2 3 3: half a pair reversed, 3.5; three ties of two
    take 18 / 30 off the 7, variance 0.75 x 6.4 = 4.8, z = 1.5975, p = 0.1101."""
    monkeypatch.setattr(ranktest, "EXACT", 0)
    assert p_value([1, 2, 3], [4, 5, 6]) == pytest.approx(0.0809, abs=5e-5)
    assert p_value([1, 1, 2], [2, 3, 3]) == pytest.approx(0.1101, abs=1e-4)


def test_the_shift_is_the_median_of_all_differences():
    """B - A: 4-1 5-1 9-1, 4-2 5-2 9-2 = 2 3 3 4 7 8: the middle two are 3 and 4."""
    found = shift([1, 2], [4, 5, 9])
    assert found.ns == Fraction(7, 2)
    assert found.low_ns is None, "two and three steps exclude nothing at 95 %"


def test_the_interval_leaves_out_what_the_test_rejects():
    """Four and four: of C(8, 4) = 70 arrangements one has no pair reversed: 1/70 = 1.4 % is below 2.5 %, two
    have at most one: 2.9 % is above.  So the least and the greatest difference are the ends."""
    found = shift([0, 1, 2, 3], [10, 12, 14, 16])
    assert (found.low_ns, found.high_ns) == (10 - 3, 16 - 0)


def test_critical_values_are_those_of_the_printed_tables():
    """U at 5 %, two-sided: 5 and 5 steps 2, 6 and 6 steps 5, 8 and 8 steps 13, 20 and 20 steps 127 (Mann and
    Whitney's tables as reprinted since); the interval begins with the difference after."""
    found = {n: ranktest._outside(n, n) - 1 for n in (5, 6, 8, 20)}
    assert found == {5: 2, 6: 5, 8: 13, 20: 127}


@given(VALUES, VALUES)
@settings(max_examples=100)
def test_the_shift_of_the_other_direction_is_its_negative(a: list[int], b: list[int]):
    one, other = shift(a, b), shift(b, a)
    assert one.ns == -other.ns == Fraction(median(y - x for x in a for y in b))
    if one.low_ns is not None and one.high_ns is not None:
        assert (other.low_ns, other.high_ns) == (-one.high_ns, -one.low_ns)
        assert one.low_ns <= one.ns <= one.high_ns


def test_a_thousand_steps_on_both_sides_are_no_million_differences():
    """a = 0 .. 1999, b = a + 250 ns: the typical step is 250 longer, which noise of 2000 does not hide."""
    a = list(range(2000))
    found = shift(a, [x + 250 for x in a])
    assert found.ns == 250
    assert found.low_ns is not None
    assert found.high_ns is not None
    assert 200 < found.low_ns < 250 < found.high_ns < 300
    assert p_value(a, [x + 250 for x in a]) < 0.001
