"""By how much the clocks of the ranks differ (DEFINITIONS §8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from rooflight.results.instances import Instances
from rooflight.results.result import RankResult
from rooflight.trace.tables import I64, rows_by

_LEAST_OFFSET_NS = 10_000
_SURE_MADS = 5


def offsets(ranks: Sequence[RankResult], instances: Instances) -> Mapping[int, int]:
    """By how many ns each rank's clock is ahead of the lowest rank's, where that is sure; others are
    left out.  ``ranks`` are in order.

    A host has one clock.  All leave a collective together, so that it tells, for each clock that took
    part, one end: the median over its ranks.  The offset is the median over collectives of the
    difference between a clock's end and the reference's.
    """
    clock = _clocks(ranks)
    result: dict[int, int] = {}
    for c, ahead in _ahead(instances, np.array(clock, np.int64)):
        if offset := _sure(ahead):
            result |= {r.rank.rank: offset for r, mine in zip(ranks, clock, strict=True) if mine == c}
    return result


def _clocks(ranks: Sequence[RankResult]) -> list[int]:
    """The clock of each rank; 0 is the lowest rank's."""
    found: dict[tuple[str | None, int], int] = {}
    # A host may be called like a rank: the other half of the key tells them apart.
    keys = [(r.rank.host, -1) if r.rank.host else (None, r.rank.rank) for r in ranks]
    return [found.setdefault(key, len(found)) for key in keys]


def _ahead(instances: Instances, clock: I64) -> list[tuple[int, I64]]:
    """By clock, twice the ns by which its end is ahead of clock 0's, one per collective of both."""
    collective, of = instances.of_member, clock[instances.rank]
    rows = np.flatnonzero(instances.all_rank[collective])
    rows = rows[np.lexsort((instances.end[rows], of[rows], collective[rows]))]
    collective, of, end = collective[rows], of[rows], instances.end[rows]
    begin = np.flatnonzero(np.diff(collective, prepend=-1) | np.diff(of, prepend=-1))
    size = np.diff(begin, append=rows.size)
    twice = end[begin + (size - 1) // 2] + end[begin + size // 2]
    collective, of = collective[begin], of[begin]
    reference = np.zeros(len(instances), np.int64)
    known = np.zeros(len(instances), bool)
    reference[collective[of == 0]], known[collective[of == 0]] = twice[of == 0], True
    other = (of != 0) & known[collective]
    ahead = twice[other] - reference[collective[other]]
    return [(c, ahead[at]) for c, at in rows_by(of[other])]


def _sure(ahead: I64) -> int:
    """The median of half of ``ahead``, or 0 when it is small or no better known than its spread."""
    # Whole numbers throughout: an offset of years must not lose its nanoseconds.
    middle = _twice_median(ahead.tolist())
    spread = _twice_median([abs(2 * a - middle) for a in ahead.tolist()])
    sure = abs(middle) > 4 * _LEAST_OFFSET_NS and 2 * abs(middle) > _SURE_MADS * spread
    return round(Fraction(middle, 4)) if sure else 0


def _twice_median(values: list[int]) -> int:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
