"""Sets of instants as sorted, disjoint half-open intervals in integer nanoseconds.

A set is an array of shape (n, 2).  All operations are linear in the number of intervals after a sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rooflight.trace.tables import I64

Set = np.ndarray[Any, np.dtype[np.int64]]

EMPTY: Set = np.empty((0, 2), np.int64)


def union(start: I64, end: I64) -> Set:
    """The union of the intervals [start, end); empty ones add nothing."""
    keep = end > start
    start, end = start[keep], end[keep]
    if start.size == 0:
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.ones(start.size, bool)
    first[1:] = start[1:] > reach[:-1]
    last = np.append(first[1:], True)
    return np.column_stack((start[first], reach[last]))


def union_of(*sets: Set) -> Set:
    """The union of sets."""
    both = np.concatenate(sets) if sets else EMPTY
    return union(both[:, 0], both[:, 1])


def measure(s: Set) -> int:
    """The length of a set, in ns."""
    return int((s[:, 1] - s[:, 0]).sum())


def _covered(s: Set, bounds: I64) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each elementary interval that starts at ``bounds`` lies in ``s``."""
    at = np.searchsorted(s[:, 0], bounds, side="right") - 1
    inside = at >= 0
    inside[inside] = bounds[inside] < s[at[inside], 1]
    return inside


def _combined(a: Set, b: Set, *, both: bool) -> Set:
    if a.size == 0 or (both and b.size == 0):
        return EMPTY
    # A border that both have makes an empty interval, which the union drops.
    bounds = np.sort(np.concatenate((a.ravel(), b.ravel())))
    left = bounds[:-1]
    keep = _covered(a, left) & (_covered(b, left) == both)
    return union(left[keep], bounds[1:][keep])


def intersection(a: Set, b: Set) -> Set:
    """Instants in both."""
    return _combined(a, b, both=True)


def difference(a: Set, b: Set) -> Set:
    """Instants of ``a`` that are not in ``b``."""
    return a if b.size == 0 else _combined(a, b, both=False)


class Clipper:
    """Answers how much of a set lies before an instant, so that many windows cost a search each."""

    def __init__(self, s: Set) -> None:
        self._start, self._end = s[:, 0], s[:, 1]
        self._before = np.concatenate(([0], np.cumsum(self._end - self._start)))

    def until(self, t: int) -> int:
        """The measure of the set before instant ``t``, in ns."""
        n = int(np.searchsorted(self._start, t, side="right"))
        return int(self._before[n]) - (max(0, int(self._end[n - 1]) - t) if n else 0)

    def within(self, start: int, end: int) -> int:
        """The measure of the set within [start, end), in ns."""
        return self.until(end) - self.until(start)
