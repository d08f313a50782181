"""Which interval encloses an instant on a thread, innermost first.

Innermost is the latest start, then the shortest.  Where the intervals of a thread nest, as calls do, the
answer is a count: as many enclose an instant as have started and not ended, and the innermost is the last
one to start at that depth.  A thread whose clock reads made two calls overlap is swept call by call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import I32, I64, distinct, values_at

#: Keys of thread and instant stay below this.
_FAR = 1 << 62
#: The coarse clock has two to the power of this many ticks.
_TICKS = 16


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals [start, end) in ns, each on a thread."""

    thread: I64 | I32
    start: I64
    end: I64


def parents(spans: Spans) -> I64:
    """For each interval the one around its start on its thread, by index; -1 when there is none.

    Of two that start together the longer one is outside.  An interval may end after its parent.
    """
    return Nest(spans).parents()


def innermost(spans: Spans, thread: I64 | I32, at: I64) -> I64:
    """For each instant the interval that encloses it, by index; -1 when there is none."""
    return Nest(spans).innermost(thread, at)


def holding(start: I64, end: I64, instants: I64) -> I64:
    """The places of the intervals [start, end) that hold one of the instants."""
    if instants.size == 0:
        return np.empty(0, np.int64)
    ordered = np.sort(instants)
    # A search per interval is slow where there are a million: most are ruled out by a coarse clock.
    low, ticks = int(ordered[0]), _TICKS
    shift = max(0, (int(ordered[-1]) - low).bit_length() - ticks)
    before = np.searchsorted(ordered, low + (np.arange((1 << ticks) + 1) << shift))
    first = np.clip((start - low) >> shift, 0, (1 << ticks) - 1)
    last = np.clip((end - low) >> shift, -1, (1 << ticks) - 1)
    perhaps = np.flatnonzero(before[last + 1] > before[first])
    # The first instant from its start on is before its end.
    following = np.append(ordered, np.iinfo(np.int64).max)[np.searchsorted(ordered, start[perhaps])]
    return perhaps[following < end[perhaps]]


class Nest:
    """The intervals in order of their start, with their depth: made once, asked both ways."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        long = np.flatnonzero(spans.end > spans.start)
        self._scale(spans.thread[long], np.concatenate((spans.start[long], spans.end[long])))
        order = _longest_first(self._key(spans.thread[long], spans.start[long]), spans.end[long])
        self._rows = long[order]
        self._begin = self._key(spans.thread[self._rows], spans.start[self._rows])
        # Calls end nearly in the order in which they start, and a stable sort merges runs.
        self._finish = np.sort(self._key(spans.thread[self._rows], spans.end[self._rows]), kind="stable")
        own = np.arange(self._rows.size)
        depth = self._open(spans.thread[self._rows], self._begin, own)
        self._by_depth = _in_order(depth) if own.size else own
        self._depths = depth[self._by_depth] * (own.size + 1) + self._by_depth
        #: The place in the order of the interval around each; -1 is none.  Asked depth by depth, in order.
        self._parent = np.empty(own.size, np.int64)
        self._parent[self._by_depth] = self._last_at(depth[self._by_depth] - 1, self._by_depth)
        self._tangled = self._overlapping()

    def parents(self) -> I64:
        """As :func:`parents`."""
        spans, result = self._spans, np.full(self._spans.start.size, -1, np.int64)
        result[self._rows] = values_at(self._rows, self._parent, -1)
        # An empty interval encloses nothing and has no place in the order.
        empty = np.flatnonzero(spans.end <= spans.start)
        result[empty] = self.innermost(spans.thread[empty], spans.start[empty])
        tangled = np.flatnonzero(np.isin(spans.thread[self._rows], self._tangled))
        if tangled.size:
            rows = self._rows[tangled]
            result[rows] = self._swept(spans.thread[rows], spans.start[rows], tangled)
        return result

    def innermost(self, thread: I64 | I32, at: I64) -> I64:
        """As :func:`innermost`."""
        key = self._key(thread, at)
        before = np.searchsorted(self._begin, key, side="right")
        result = values_at(self._rows, self._last_at(self._open(thread, key, before) - 1, before), -1)
        tangled = np.isin(thread, self._tangled)
        if tangled.any():
            result[tangled] = self._swept(thread[tangled], at[tangled], before[tangled])
        return result

    def _scale(self, thread: I64 | I32, times: I64) -> None:
        """How instants are numbered: by their distance from the first, by rank where that is too far."""
        self._low, self._high = (int(times.min()), int(times.max())) if times.size else (0, 0)
        self._width = self._high - self._low + 3
        self._known: I64 | None = None
        if self._width * (int(thread.max(initial=0)) + 1) >= _FAR:
            self._known = distinct(times)
            self._width = self._known.size + 1

    def _number(self, at: I64) -> I64:
        if self._known is not None:
            return np.searchsorted(self._known, at, side="right")
        return np.clip(at, self._low - 1, self._high + 1) - (self._low - 1)

    def _key(self, thread: I64 | I32, at: I64) -> I64:
        """Thread and instant as one number; an instant beyond all known ones counts as just beyond."""
        key: I64 = thread.astype(np.int64) * self._width + self._number(at)
        return key

    def _open(self, thread: I64 | I32, key: I64, place: I64) -> I64:
        """How many intervals before ``place`` in the order are open at the instant of a key."""
        threads = np.arange(int(thread.max(initial=0)) + 1)
        base = np.searchsorted(self._begin, threads * self._width)[thread]
        ended = np.searchsorted(self._finish, key, side="right") - base
        opened: I64 = place - base - ended
        return opened

    def _last_at(self, depth: I64, place: I64) -> I64:
        """Position of the last interval before ``place`` at a depth; -1 for depth -1."""
        found = np.searchsorted(self._depths, depth * (self._rows.size + 1) + place) - 1
        return values_at(self._by_depth, np.where(depth >= 0, found, -1), -1)

    def _overlapping(self) -> I64:
        """Threads on which an interval ends after the one that it started in."""
        end = self._spans.end[self._rows]
        late = end > values_at(end, self._parent, np.iinfo(np.int64).max)
        return distinct(self._spans.thread[self._rows[late]].astype(np.int64))

    def _swept(self, thread: I64 | I32, at: I64, before: I64) -> I64:
        """As :meth:`innermost` among the intervals before a place in the order, each, with the open calls of
        each thread on a stack."""
        result = np.full(at.size, -1, np.int64)
        end, rows = self._spans.end[self._rows].tolist(), self._rows.tolist()
        of_thread = self._spans.thread[self._rows].tolist()
        stack: list[int] = []
        entered, current = 0, None
        order = np.lexsort((at, before, thread))
        for i, who, t, place in zip(
            order.tolist(), thread[order].tolist(), at[order].tolist(), before[order].tolist(), strict=True
        ):
            if who != current:
                stack, current = [], who
                entered = int(np.searchsorted(self._begin, who * self._width))
            while entered < place and of_thread[entered] == who:
                start = self._spans.start[rows[entered]]
                while stack and end[stack[-1]] <= start:
                    stack.pop()
                stack.append(entered)
                entered += 1
            while stack and end[stack[-1]] <= t:
                stack.pop()
            if stack:
                result[i] = rows[stack[-1]]
        return result


def _longest_first(key: I64, end: I64) -> I64:
    """The order of the keys, among equal ones the later end first."""
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0)
    # Rows come nearly sorted, and only those that start together have to be looked at again.
    tied = distinct(np.concatenate((same, same + 1)))
    rows = order[tied]
    order[tied] = rows[np.lexsort((-end[rows], key[rows]))]
    return order


def _in_order(depth: I64) -> I64:
    """The places of each depth in order, the outermost depth first."""
    shallow = depth.max() < 1 << 15
    # Short integers are sorted by their digits.
    return np.argsort(depth.astype(np.int16) if shallow else depth, kind="stable")
