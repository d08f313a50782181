"""The rank test by which two sets of steps differ or not, and by how much (in whole nanoseconds).

The test is Mann's and Whitney's (Annals of Mathematical Statistics 18, 1947): it asks how often a step of B
is longer than one of A, so that one slow step weighs no more than any other.  Up to :data:`EXACT` steps in
all its null distribution is counted out, given the ties that there are; beyond that it is the normal one,
corrected for ties and for continuity.  The shift is that of Hodges and Lehmann (same annals 34, 1963): the
median of all differences b - a; its interval holds every shift that the test does not reject.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rooflight.trace.tables import I64

#: Steps of both sides together of which every arrangement is counted; C(60, 30) fits 64 bits.
EXACT = 60
CONFIDENCE_PCT = 95
_TAIL = 1 - CONFIDENCE_PCT / 100
#: Of the standard normal distribution, two-sided.
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class Shift:
    """By how many ns B is above A, with the 95 % interval; ``None`` where too few steps allow none."""

    ns: Fraction
    low_ns: Fraction | None
    high_ns: Fraction | None


def p_value(a: Sequence[int], b: Sequence[int]) -> float:
    """The two-sided probability that steps of one kind are ranked so unevenly; the same for (b, a)."""
    few, many = sorted((list(a), list(b)), key=len)
    ranks, ties = _doubled_ranks(few + many)
    mine = sum(ranks[: len(few)])
    if len(ranks) <= EXACT:
        return _exact(ranks, len(few), mine)
    return _normal(len(few), len(many), mine, ties)


def least_p(n: int, m: int) -> float:
    """The least probability that ``n`` and ``m`` steps can have: all of one before all of the other."""
    return min(1.0, 2 / math.comb(n + m, n))


def shift(a: Sequence[int], b: Sequence[int]) -> Shift:
    """The typical difference b - a."""
    left, right = np.sort(np.array(a, np.int64)), np.sort(np.array(b, np.int64))
    pairs = len(a) * len(b)
    lower, upper = (_difference(left, right, k) for k in ((pairs + 1) // 2, pairs // 2 + 1))
    middle = Fraction(lower + upper, 2)
    out = _outside(len(a), len(b))
    if out < 1:
        return Shift(middle, None, None)
    low, high = (_difference(left, right, k) for k in (out, pairs + 1 - out))
    return Shift(middle, Fraction(low), Fraction(high))


def _doubled_ranks(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """Twice the rank of each value (equal ones share the mean of theirs), and how many are equal."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks, ties = [0] * len(values), []
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for i in order[at:end]:
            ranks[i] = at + 1 + end
        ties.append(end - at)
        at = end
    return ranks, ties


def _exact(ranks: Sequence[int], n: int, mine: int) -> float:
    """The share of all choices of ``n`` doubled ranks whose sum is as far from the middle as ``mine``."""
    counts = _sums(ranks, n)
    middle = n * (len(ranks) + 1)
    far = np.abs(np.arange(counts.size) - middle) >= abs(mine - middle)
    return int(counts[far].sum()) / math.comb(len(ranks), n)


def _sums(ranks: Sequence[int], n: int) -> I64:
    """How many choices of ``n`` of the ranks have each sum."""
    counts = np.zeros((n + 1, sum(ranks) + 1), np.int64)
    counts[0, 0] = 1
    for r in ranks:
        counts[1:, r:] += counts[:-1, : counts.shape[1] - r].copy()
    found: I64 = counts[n]
    return found


def _normal(n: int, m: int, mine: int, ties: Sequence[int]) -> float:
    count = n + m
    tied = sum(t**3 - t for t in ties) / (count * (count - 1))
    variance = n * m / 12 * (count + 1 - tied)
    away = abs(mine - n * (count + 1)) / 2 - 0.5
    if variance <= 0 or away <= 0:
        return 1.0
    return math.erfc(away / math.sqrt(2 * variance))


def _outside(n: int, m: int) -> int:
    """Which of the sorted differences, from below and from above, is the border of the interval."""
    if n + m > EXACT:
        return math.floor(n * m / 2 - _Z * math.sqrt(n * m * (n + m + 1) / 12))
    few = min(n, m)
    sums = _sums(range(1, n + m + 1), few)
    # The sum of ranks 1 to few is the least: no pair is the other way round.
    below = np.cumsum(sums[few * (few + 1) // 2 :]) / math.comb(n + m, few)
    return int(np.searchsorted(below, _TAIL / 2, side="right"))


def _difference(a: I64, b: I64, k: int) -> int:
    """The ``k``-th smallest (from 1) of all differences b - a of sorted values, found by halving its range:
    a thousand steps on both sides would be a million differences."""
    low, high = int(b[0]) - int(a[-1]), int(b[-1]) - int(a[0])
    while low < high:
        middle = (low + high) // 2
        if int(np.searchsorted(b, a + middle, side="right").sum()) >= k:
            high = middle
        else:
            low = middle + 1
    return low
