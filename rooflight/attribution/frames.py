"""What was open on a host thread around a stretch of time: a call, an op, an annotation, a Python frame."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.idle import named_step
from rooflight.attribution.nesting import Nest, Spans, holding
from rooflight.trace.tables import I64, HostKind, Mask, among, distinct, values_at
from rooflight.trace.timeline import Timeline

#: A stretch that cuts through more calls inside each other than this has no better frame further out.
MAX_CLIMB = 64


@dataclass(frozen=True, slots=True)
class Frames:
    """Row-aligned with the stretches: rows of ``timeline.host``, -1 where nothing was open.

    ``row`` is the innermost row that is open for at least half of the stretch (where none is, of those
    open at its middle the outermost), ``around`` the op or annotation around it if it is an API call.
    """

    row: I64
    around: I64


def frames(timeline: Timeline, rows: I64, thread: I64, start: I64, end: I64) -> Frames:
    """The frames of the stretches [start, end), each on a thread, among the host's ``rows``."""
    host, middle = timeline.host, middles(start, end)
    rows = rows[holding(host.start[rows], host.end[rows], middle)]
    nest = Nest(Spans(host.thread[rows], host.start[rows], host.end[rows]))
    at, parent = nest.innermost(thread, middle), nest.parents()
    at = _open_for_half(host.start[rows], host.end[rows], parent, at, start, end)
    around = _around_call(among(host.kind[rows], np.array(_CALLS)), parent, at)
    return Frames(values_at(rows, at, -1), values_at(rows, around, -1))


def middles(start: I64, end: I64) -> I64:
    """An instant of each stretch: what is open for half of it is open there."""
    return start + (end - start) // 2


@dataclass(frozen=True, slots=True)
class OpenRows:
    """Rows of the host that may be frames: ``calls`` (ops, API calls and annotations but those of the
    steps) tell what was done, ``stack`` are the Python frames, where they were recorded."""

    calls: I64
    stack: I64


def open_rows(timeline: Timeline, instants: I64) -> OpenRows:
    """The rows that are open at one of the instants, on whatever thread."""
    host = timeline.host
    rows = holding(host.start, host.end, instants)
    python = host.kind[rows] == HostKind.PYTHON
    other = rows[~python]
    return OpenRows(other[~named_step(timeline, other)], rows[python])


def source_frames(timeline: Timeline, thread: I64, start: I64, end: I64) -> I64:
    """For each stretch the innermost Python frame, as in :class:`Frames`, that tells a place in a source
    file, as built-in functions do not; -1 where there is none."""
    host = timeline.host
    if not (host.kind == HostKind.PYTHON).any():
        return np.full(start.size, -1, np.int64)
    stack = open_rows(timeline, middles(start, end)).stack
    names = distinct(host.name[stack])
    told = np.array([bool(_SOURCE.search(timeline.names[i])) for i in names.tolist()], bool)
    return frames(timeline, stack[among(host.name[stack], names[told])], thread, start, end).row


#: As in "train.py(42): main".
_SOURCE = re.compile(r"\(\d{1,9}\): ")
_CALLS = (HostKind.RUNTIME, HostKind.DRIVER)


def _open_for_half(row_start: I64, row_end: I64, parent: I64, at: I64, start: I64, end: I64) -> I64:
    """From the innermost outwards as long as the interval holds less than half of the stretch."""
    at = at.copy()
    left = np.flatnonzero(at >= 0)
    for _ in range(MAX_CLIMB):
        row = at[left]
        open_for = np.minimum(row_end[row], end[left]) - np.maximum(row_start[row], start[left])
        farther = (2 * open_for < end[left] - start[left]) & (parent[row] >= 0)
        left = left[farther]
        if left.size == 0:
            break
        at[left] = parent[at[left]]
    return at


def _around_call(is_call: Mask, parent: I64, at: I64) -> I64:
    """For each interval that is an API call the next one outwards that is none; else -1."""
    around = at.copy()
    left = np.flatnonzero(at >= 0)
    left = left[is_call[at[left]]]
    result = np.full(at.size, -1, np.int64)
    for _ in range(MAX_CLIMB):
        around[left] = parent[around[left]]
        found = around[left] >= 0
        done = left[found][~is_call[around[left[found]]]]
        result[done] = around[done]
        left = left[found][is_call[around[left[found]]]]
        if left.size == 0:
            break
    return result
