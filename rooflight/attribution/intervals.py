"""Sets of instants as sorted, disjoint half-open intervals in integer nanoseconds.

A set is an array of shape (n, 2).  All operations are linear in the number of intervals after a sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rooflight.trace.tables import I64, Mask, distinct

Set = np.ndarray[Any, np.dtype[np.int64]]
F64 = np.ndarray[Any, np.dtype[np.float64]]
#: Whole nanoseconds, or floats where instants have weights.
Amounts = np.ndarray[Any, np.dtype[Any]]

EMPTY: Set = np.empty((0, 2), np.int64)
_NEVER = -(1 << 62)


def union(start: I64, end: I64) -> Set:
    """The union of the intervals [start, end); empty ones add nothing."""
    keep = end > start
    start, end = start[keep], end[keep]
    if start.size == 0:
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
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


def _covered(s: Set, instants: I64) -> Mask:
    """Whether each instant lies in ``s``: after an odd number of its borders, which are all different."""
    return _odd(np.searchsorted(s.ravel(), instants, side="right"))


class _Both:
    """Two sets side by side: all their borders in order, and which set holds what follows each."""

    def __init__(self, a: Set, b: Set) -> None:
        bounds, of_a = _merged(a.ravel(), b.ravel())
        # Of two bounds at one instant the second knows of both.
        last = np.flatnonzero(np.append(bounds[1:] > bounds[:-1], True))
        before_a = np.cumsum(of_a, dtype=np.int64)[last]
        self._bounds = bounds[last]
        self.in_a, self.in_b = _odd(before_a), _odd(last + 1 - before_a)

    def where(self, inside: Mask) -> Set:
        """Between two bounds nothing changes; the result begins and ends where the answer does."""
        changes = np.append(inside[:1], inside[1:] != inside[:-1])
        found: Set = self._bounds[changes].reshape(-1, 2)
        return found


def _merged(a: I64, b: I64) -> tuple[I64, Mask]:
    """Two sorted columns as one, and which of its values are of ``a``: a search for each of the fewer."""
    of_a = np.zeros(a.size + b.size, bool)
    if a.size <= b.size:
        of_a[np.searchsorted(b, a) + np.arange(a.size)] = True
    else:
        of_a[:] = True
        of_a[np.searchsorted(a, b, side="right") + np.arange(b.size)] = False
    merged = np.empty(of_a.size, np.int64)
    merged[of_a], merged[~of_a] = a, b
    return merged, of_a


def _odd(counts: I64) -> Mask:
    return (counts & 1).astype(bool)


def intersection(a: Set, b: Set) -> Set:
    """Instants in both."""
    if a.size == 0 or b.size == 0:
        return EMPTY
    both = _Both(a, b)
    return both.where(both.in_a & both.in_b)


def difference(a: Set, b: Set) -> Set:
    """Instants of ``a`` that are not in ``b``."""
    if a.size == 0 or b.size == 0:
        return a
    both = _Both(a, b)
    return both.where(both.in_a & ~both.in_b)


def parted(a: Set, b: Set) -> tuple[Set, Set]:
    """Instants of ``a`` that are in ``b``, and those that are not."""
    if a.size == 0 or b.size == 0:
        return EMPTY, a
    both = _Both(a, b)
    return both.where(both.in_a & both.in_b), both.where(both.in_a & ~both.in_b)


def cut(s: Set, start: I64, end: I64) -> tuple[Set, I64]:
    """The set in pieces, each within one of the sorted, disjoint intervals [start, end), and the index of
    that interval; instants outside of all are left out."""
    bounds = distinct(np.concatenate((s.ravel(), start, end)))
    left, right = bounds[:-1], bounds[1:]
    at = np.searchsorted(start, left, side="right") - 1
    keep = at >= 0
    keep[keep] = left[keep] < end[at[keep]]
    keep &= _covered(s, left)
    return np.column_stack((left[keep], right[keep])), at[keep]


class Clipper:
    """How much of a set lies in each of many windows, at the price of a search each.

    With ``weight``, one figure for each interval of the set, every instant counts so much.
    """

    def __init__(self, s: Set, weight: F64 | None = None) -> None:
        self._start = s[:, 0]
        # Before the first interval there is none, which ends before everything.
        self._end = np.concatenate(([_NEVER], s[:, 1]))
        self._weight = None if weight is None else np.concatenate(([0.0], weight))
        length = s[:, 1] - s[:, 0]
        # Sums of a million floats are to be right to the nanosecond.
        counted = length if weight is None else length.astype(np.longdouble) * weight
        self._before = np.concatenate((np.zeros(1, counted.dtype), np.cumsum(counted)))

    def within(self, start: I64, end: I64) -> Amounts:
        """The (weighted) measure of the set within each window [start, end), in ns."""
        amount: Amounts = self._until(end) - self._until(start)
        return amount if self._weight is None else amount.astype(np.float64)

    def _until(self, t: I64) -> Amounts:
        n = np.searchsorted(self._start, t, side="right")
        beyond: Amounts = np.maximum(0, self._end[n] - t)
        if self._weight is not None:
            beyond = beyond * self._weight[n]
        amount: Amounts = self._before[n] - beyond
        return amount
