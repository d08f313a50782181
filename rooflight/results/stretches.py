"""Idle time in stretches: one cause, one gap, and what explains it.

A gap is split between its causes as the partition splits it, so the stretches of a cause are that part of
the partition, to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.attribution.frames import frames, middles, open_rows
from rooflight.attribution.idle import CAUSES, HOST, Idle
from rooflight.attribution.launches import Links
from rooflight.trace.tables import I64, values_at
from rooflight.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of a device within the recording, in order: [start, end) in ns and the row of
    ``timeline.gpu`` that ends each, -1 for the one after the last work."""

    start: I64
    end: I64
    event: I64


@dataclass(frozen=True, slots=True)
class Stretches:
    """Disjoint idle instants [start, end) in ns: ``cause`` is a place in :data:`CAUSES`, ``gap`` the place
    of the gap, ``thread`` the one that told the cause or launched what ended the gap (-1 is none).

    ``frame`` is the name of what explains it and ``around`` that of the op around an API call, by their
    place in ``timeline.names`` (-1 is none): what was open on the thread, and where the end of the gap
    tells the cause, the op of what ended it.
    """

    cause: I64
    start: I64
    end: I64
    gap: I64
    thread: I64
    frame: I64
    around: I64


def gaps_within(idle: Idle, window: tuple[int, int]) -> Gaps:
    """The gaps within ``window``, that after the last work too."""
    start = np.append(idle.gaps.start, window[0] if idle.after is None else idle.after)
    end = np.append(idle.gaps.end, window[1])
    event = np.append(idle.gaps.event, -1)
    start = np.maximum(start, window[0])
    some = np.flatnonzero(end > start)
    return Gaps(start[some], end[some], event[some])


def stretches(timeline: Timeline, links: Links, idle: Idle, gaps: Gaps) -> Stretches:
    """All idle time of a device, in order of its start."""
    sizes = [len(r.instants) for r in idle.reads]
    cause = np.repeat(np.array([CAUSES.index(r.cause) for r in idle.reads], np.int64), sizes)
    told_by = np.repeat(np.array([r.thread for r in idle.reads], np.int64), sizes)
    start, end = np.concatenate([np.empty((0, 2), np.int64), *(r.instants for r in idle.reads)]).T
    order = np.argsort(start, kind="stable")
    cause, told_by, start, end = (c[order] for c in (cause, told_by, start, end))
    gap = np.searchsorted(gaps.start, start, side="right") - 1
    thread, frame = (column[gap] for column in _of_events(timeline, links, gaps.event))
    around = np.full(frame.size, -1, np.int64)
    unoccupied = cause == CAUSES.index(HOST)
    frame[unoccupied] = -1
    thread = np.where((told_by >= 0) | unoccupied, told_by, thread)
    told = np.flatnonzero(told_by >= 0)
    rows = open_rows(timeline, middles(start[told], end[told]))
    home = unoccupied[told]
    for at, candidates in ((told[home], rows.stack), (told[~home], rows.calls)):
        found = frames(timeline, candidates, thread[at], start[at], end[at])
        frame[at] = values_at(timeline.host.name, found.row, -1)
        around[at] = values_at(timeline.host.name, found.around, -1)
    return Stretches(cause, start, end, gap, thread, frame, around)


def _of_events(timeline: Timeline, links: Links, event: I64) -> tuple[I64, I64]:
    """The thread that launched each GPU event, and the name of its op, else its own; -1 for event -1."""
    op, launch = values_at(links.op, event, -1), values_at(links.launch, event, -1)
    name = values_at(timeline.host.name, op, -1)
    thread = values_at(timeline.host.thread, launch, -1)
    return thread, np.where(name >= 0, name, values_at(timeline.gpu.name, event, -1))
