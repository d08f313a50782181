"""Which kernel an instant belongs to when several run at once (DEFINITIONS §16).

Of the kernels that run, the one of the first regime in the order compute, memory, latency, unknown has
the instant, and of several of these the one that started first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rooflight.attribution.intervals import Clipper, Set, cut
from rooflight.trace.tables import I64, Mask, distinct


@dataclass(frozen=True, slots=True)
class Owned:
    """Disjoint instants [start, end) in ns, each with the row of its owner."""

    start: I64
    end: I64
    owner: I64

    def within(self, windows: Set) -> Owned:
        """What lies within the windows: sorted, disjoint intervals."""
        inside = Clipper(windows).within(self.start, self.end)
        whole = inside == self.end - self.start
        # Few pieces cross a border.
        crossing = np.flatnonzero((inside > 0) & ~whole)
        pieces, at = cut(windows, self.start[crossing], self.end[crossing])
        start = np.concatenate((self.start[whole], pieces[:, 0]))
        end = np.concatenate((self.end[whole], pieces[:, 1]))
        owner = np.concatenate((self.owner[whole], self.owner[crossing[at]]))
        order = np.argsort(start, kind="stable")
        return Owned(start[order], end[order], owner[order])

    def by_owner(self, n: int) -> I64:
        """The ns of each of ``n`` owners."""
        return summed_by(self.owner, self.end - self.start, n)

    def of(self, owners: Mask) -> Set:
        """The instants of some owners, in order."""
        mine = owners[self.owner]
        return np.column_stack((self.start[mine], self.end[mine]))


def summed_by(owner: I64, amount: I64, n: int) -> I64:
    """The amounts of each of ``n`` owners; whole numbers, which sums of floats would not keep."""
    total = np.zeros(n, np.int64)
    np.add.at(total, owner, amount)
    return total


def owned(start: I64, end: I64, rank: I64) -> Owned:
    """Every instant of the union of the intervals, given to one row; a lower ``rank`` goes first."""
    rows = np.flatnonzero(end > start)
    rows = rows[np.lexsort((rank[rows], start[rows]))]
    if rows.size == 0:
        none = np.empty(0, np.int64)
        return Owned(none, none, none)
    reach = np.maximum.accumulate(end[rows])
    first = np.flatnonzero(np.concatenate(([True], start[rows][1:] >= reach[:-1])))
    sizes = np.diff(np.append(first, rows.size))
    alone = rows[first[sizes == 1]]
    parts = [np.column_stack((start[alone], end[alone], alone))]
    for at, size in zip(first[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        parts.append(_cluster(rows[at : at + size], start, end, rank))
    table = np.concatenate(parts)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Owned(table[:, 0], table[:, 1], table[:, 2])


def _cluster(rows: I64, start: I64, end: I64, rank: I64) -> I64:
    """Kernels that overlap: a sweep over their borders with the running ones on a heap."""
    borders = distinct(np.concatenate((start[rows], end[rows]))).tolist()
    waiting = list(
        zip(start[rows].tolist(), rank[rows].tolist(), rows.tolist(), end[rows].tolist(), strict=True)
    )
    running: list[tuple[int, int, int, int]] = []
    out: list[tuple[int, int, int]] = []
    entered = 0
    for left, right in pairwise(borders):
        while entered < len(waiting) and waiting[entered][0] <= left:
            s, r, row, e = waiting[entered]
            heapq.heappush(running, (r, s, row, e))
            entered += 1
        while running and running[0][3] <= left:
            heapq.heappop(running)
        if running:
            out.append((left, right, running[0][2]))
    return np.array(out, np.int64).reshape(-1, 3)
