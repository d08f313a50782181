"""The parts of one sequence that another one repeats, and where it says what they mean.

Symbols are numbers; each place of the known sequence has a meaning.  A run is as long as it can be, and a
place in it has a meaning only where every place of the known sequence that holds the whole run agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rooflight.trace.tables import I64, Mask

#: Windows of up to 2**10 symbols are told apart at once, longer ones piece by piece.
_LEVELS = 11
#: Comparisons that one call may make.  What would take more stays without a meaning.
BUDGET = 10_000_000
_PER_RUN = 500
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True, slots=True)
class Run:
    """``length`` symbols from ``start`` on that the known sequence holds from ``known`` on; ``agreed`` tells
    at which of them all places that hold the run mean the same."""

    start: int
    known: int
    length: int
    agreed: Mask


def common_runs(wanted: I64, known: I64, meaning: I64, shortest: I64) -> list[Run]:
    """The longest common runs of ``wanted`` from its beginning on.

    ``meaning`` is row-aligned with ``known``; ``shortest`` with ``wanted``: a run that begins there has so
    many symbols at least.  The place that a run names is the first that holds it.
    """
    finder = _Finder(wanted, known)
    begins = finder.begins(shortest)
    runs: list[Run] = []
    at, budget = 0, BUDGET
    while (nth := int(np.searchsorted(begins, at))) < begins.size and budget > 0:
        at = int(begins[nth])
        places, length = finder.longest(at)
        budget -= places.size * length + _PER_RUN
        if length < shortest[at] or budget < 0:
            at += 1
            continue
        meant = meaning[places[:, np.newaxis] + np.arange(length)]
        runs.append(Run(at, int(places[0]), length, (meant == meant[0]).all(axis=0)))
        at += length
    return runs


class _Finder:
    """Windows of both sequences by their content, for each power of two: equal numbers, equal windows.

    Of each place in the wanted sequence: the level of the largest window there that is known, -1 for none,
    and where in the order of the known windows of that level those like it are.
    """

    def __init__(self, wanted: I64, known: I64) -> None:
        self._split, self._size = wanted.size, wanted.size + known.size
        rank = np.unique(np.concatenate((wanted, known)), return_inverse=True)[1].astype(np.int64)
        self._ranks = [rank]
        while len(self._ranks) < _LEVELS and 1 << len(self._ranks) <= min(wanted.size, known.size):
            self._ranks.append(_doubled(self._ranks[-1], 1 << (len(self._ranks) - 1), self._split))
        self._order = [np.argsort(r[self._split :], kind="stable") for r in self._ranks]
        self._level = np.full(wanted.size, -1, np.int64)
        self._low, self._high = np.zeros(wanted.size, np.int64), np.zeros(wanted.size, np.int64)
        for level, (ranks, order) in enumerate(zip(self._ranks, self._order, strict=True)):
            mine, theirs = ranks[: self._split], ranks[self._split :]
            low, high = (np.searchsorted(theirs, mine, side, sorter=order) for side in _SIDES)
            found = high > low
            self._level[found] = level
            self._low[found], self._high[found] = low[found], high[found]

    def begins(self, shortest: I64) -> I64:
        """Where a run of the length that is asked for may begin."""
        return np.flatnonzero((self._level >= 0) & (shortest >> np.maximum(self._level, 0) <= 1))

    def longest(self, at: int) -> tuple[I64, int]:
        """The places of the known sequence that hold the longest run from ``at`` on, and its length."""
        level = int(self._level[at])
        places = np.sort(self._order[level][self._low[at] : self._high[at]])
        length = self._extended(at, places, level)
        return places[length == length.max()], int(length.max())

    def _extended(self, at: int, places: I64, level: int) -> I64:
        """How far what is at ``at`` and at each place goes on alike."""
        length = np.full(places.size, 1 << level, np.int64)
        going = np.arange(places.size)
        while going.size:
            # As many of the largest windows as there are, then one of each smaller size at most.
            going = going[self._step(at, places, length, going, len(self._ranks) - 1)]
        for smaller in reversed(range(len(self._ranks) - 1)):
            self._step(at, places, length, np.arange(places.size), smaller)
        return length

    def _step(self, at: int, places: I64, length: I64, which: I64, level: int) -> Mask:
        """Go on by a window of this level where it is alike; at which places it was."""
        rank = self._ranks[level]
        mine, theirs = at + length[which], self._split + places[which] + length[which]
        inside = (mine < self._split) & (theirs < self._size)
        alike = np.zeros(which.size, bool)
        alike[inside] = rank[mine[inside]] == rank[theirs[inside]]
        length[which[alike]] += 1 << level
        return alike


def _doubled(rank: I64, width: int, split: int) -> I64:
    """Windows of twice the width; one that would leave its sequence is like no other."""
    size = rank.size
    pairs = np.stack((rank, np.arange(-size, 0)))
    for low, high in ((0, split), (split, size)):
        last = max(low, high - width)
        pairs[1, low:last] = rank[low + width : last + width]
    key = pairs[0] * (2 * size + 1) + pairs[1] + size
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
