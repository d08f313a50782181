"""By how much the clocks of the ranks differ (DEFINITIONS §8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rooflight.results.instances import Instances
from rooflight.results.result import RankResult
from rooflight.trace.tables import I64, rows_by

_LEAST_OFFSET_NS = 10_000
_SURE_MADS = 5


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ends of collectives, one per collective and clock: ``twice`` the ns that the clock shows."""

    collective: I64
    clock: I64
    twice: I64


def offsets(ranks: Sequence[RankResult], instances: Instances) -> Mapping[int, int]:
    """By how many ns each rank's clock is ahead of the lowest rank's, where that is sure; others are
    left out.  ``ranks`` are in order.

    A host has one clock.  All leave a collective together, so that it tells, for each clock that took
    part, one end: the median over its ranks.  The offset is the median over collectives of the
    difference between a clock's end and the reference's.  A clock that shares no collective with the
    reference is set by one that was set before; one that nobody set is the reference of its own.
    """
    clock = _clocks(ranks)
    ends = _ends(instances, np.array(clock, np.int64))
    ahead: dict[int, int] = {}
    for root in range(len(set(clock))):
        if root not in ahead:
            ahead[root] = 0
            _spread(ends, root, ahead, len(set(clock)))
    return {r.rank.rank: ahead[c] for r, c in zip(ranks, clock, strict=True) if ahead[c]}


def _spread(ends: _Ends, root: int, ahead: dict[int, int], clocks: int) -> None:
    """Set the clocks that share collectives with ``root``, then those that share some with them."""
    line = [root]
    for known in line:
        if len(ahead) == clocks:
            return
        for c, differences in _differences(ends, known):
            if c not in ahead:
                ahead[c] = ahead[known] + _sure(differences)
                line.append(c)


def _clocks(ranks: Sequence[RankResult]) -> list[int]:
    """The clock of each rank; 0 is the lowest rank's."""
    found: dict[tuple[str | None, int], int] = {}
    # A host may be called like a rank: the other half of the key tells them apart.
    keys = [(r.rank.host, -1) if r.rank.host else (None, r.rank.rank) for r in ranks]
    return [found.setdefault(key, len(found)) for key in keys]


def _ends(instances: Instances, clock: I64) -> _Ends:
    collective, of = instances.of_member, clock[instances.rank]
    rows = np.flatnonzero(instances.all_rank[collective])
    rows = rows[np.lexsort((instances.end[rows], of[rows], collective[rows]))]
    collective, of, end = collective[rows], of[rows], instances.end[rows]
    begin = np.flatnonzero(np.diff(collective, prepend=-1) | np.diff(of, prepend=-1))
    size = np.diff(begin, append=rows.size)
    twice = end[begin + (size - 1) // 2] + end[begin + size // 2]
    return _Ends(collective[begin], of[begin], twice)


def _differences(ends: _Ends, known: int) -> list[tuple[int, I64]]:
    """By clock, twice the ns by which its end is ahead of the known clock's, one per collective of both."""
    mine = np.flatnonzero(ends.clock == known)
    if not mine.size:
        return []
    # Collectives are in order: the known clock's end of each is found by a search.
    at = np.minimum(np.searchsorted(ends.collective[mine], ends.collective), mine.size - 1)
    both = (ends.collective[mine[at]] == ends.collective) & (ends.clock != known)
    differences = ends.twice[both] - ends.twice[mine[at[both]]]
    return [(c, differences[rows]) for c, rows in rows_by(ends.clock[both])]


def _sure(differences: I64) -> int:
    """The median of half of ``differences``, or 0 when it is small or no better known than its spread."""
    # Whole numbers throughout: an offset of years must not lose its nanoseconds.
    middle = _twice_median(differences.tolist())
    spread = _twice_median([abs(2 * d - middle) for d in differences.tolist()])
    sure = abs(middle) > 4 * _LEAST_OFFSET_NS and 2 * abs(middle) > _SURE_MADS * spread
    return round(Fraction(middle, 4)) if sure else 0


def _twice_median(values: list[int]) -> int:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
