"""Which interval encloses an instant on a thread, innermost first.

Innermost is the latest start, then the shortest.  Where the intervals of a thread nest, as calls do, the
answer is a count: as many enclose an instant as have started and not ended, and the innermost is the last
one to start at that depth.  A thread whose clock reads made two calls overlap is swept call by call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import I32, I64

#: Keys of thread and instant stay below this.
_FAR = 1 << 62


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


class Nest:
    """The intervals in order of their start, with their depth: made once, asked both ways."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        long = np.flatnonzero(spans.end > spans.start)
        self._scale(spans.thread[long], np.concatenate((spans.start[long], spans.end[long])))
        order = np.lexsort((-spans.end[long], self._key(spans.thread[long], spans.start[long])))
        self._rows = long[order]
        self._begin = self._key(spans.thread[self._rows], spans.start[self._rows])
        self._finish = np.sort(self._key(spans.thread[self._rows], spans.end[self._rows]))
        #: Position of each interval in the order; an empty one has none and encloses nothing.
        self._place = np.full(spans.start.size, -1, np.int64)
        self._place[self._rows] = np.arange(self._rows.size)
        own = np.arange(self._rows.size)
        self._depth = self._open(spans.thread[self._rows], spans.start[self._rows], own)
        self._by_depth = np.sort(self._depth * (own.size + 1) + own)
        self._tangled = self._overlapping(own)

    def parents(self) -> I64:
        """As :func:`parents`."""
        return self._answer(self._spans.thread, self._spans.start, self._place)

    def innermost(self, thread: I64 | I32, at: I64) -> I64:
        """As :func:`innermost`."""
        return self._answer(thread, at, None)

    def _scale(self, thread: I64 | I32, times: I64) -> None:
        """How instants are numbered: by their distance from the first, by rank where that is too far."""
        self._low, self._high = (int(times.min()), int(times.max())) if times.size else (0, 0)
        self._width = self._high - self._low + 3
        self._known: I64 | None = None
        if self._width * (int(thread.max(initial=0)) + 1) >= _FAR:
            self._known = np.unique(times)
            self._width = self._known.size + 1

    def _number(self, at: I64) -> I64:
        if self._known is not None:
            return np.searchsorted(self._known, at, side="right")
        return np.clip(at, self._low - 1, self._high + 1) - (self._low - 1)

    def _key(self, thread: I64 | I32, at: I64) -> I64:
        """Thread and instant as one number; an instant beyond all known ones counts as just beyond."""
        key: I64 = thread.astype(np.int64) * self._width + self._number(at)
        return key

    def _open(self, thread: I64 | I32, at: I64, place: I64) -> I64:
        """How many intervals before ``place`` in the order are open at an instant."""
        base = np.searchsorted(self._begin, thread.astype(np.int64) * self._width)
        ended = np.searchsorted(self._finish, self._key(thread, at), side="right") - base
        opened: I64 = place - base - ended
        return opened

    def _last_at(self, depth: I64, place: I64) -> I64:
        """Position of the last interval before ``place`` at a depth; -1 for depth -1."""
        width = self._rows.size + 1
        found = np.searchsorted(self._by_depth, depth * width + place) - 1
        known = (depth >= 0) & (found >= 0)
        result = np.full(depth.size, -1, np.int64)
        result[known] = self._by_depth[found[known]] % width
        return result

    def _overlapping(self, own: I64) -> I64:
        """Threads on which an interval ends after the one that it started in."""
        parent = self._last_at(self._depth - 1, own)
        end = self._spans.end[self._rows]
        late = (parent >= 0) & (end > end[parent])
        return np.unique(self._spans.thread[self._rows[late]].astype(np.int64))

    def _answer(self, thread: I64 | I32, at: I64, place: I64 | None) -> I64:
        after = np.searchsorted(self._begin, self._key(thread, at), side="right")
        before = after if place is None else np.where(place >= 0, place, after)
        found = self._last_at(self._open(thread, at, before) - 1, before)
        result = np.full(at.size, -1, np.int64)
        result[found >= 0] = self._rows[found[found >= 0]]
        tangled = np.isin(thread, self._tangled)
        if tangled.any():
            result[tangled] = self._swept(thread[tangled], at[tangled], before[tangled])
        return result

    def _swept(self, thread: I64 | I32, at: I64, before: I64) -> I64:
        """As :meth:`_answer`, with the open calls of each thread on a stack."""
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
