"""Which op a host thread was really in: at each instant, the innermost (DEFINITIONS §20)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import I64, HostKind, rows_by
from rooflight.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SelfTime:
    """Disjoint instants per thread, [start, end) in ns, each with the host row of the op that has it."""

    start: I64
    end: I64
    op: I64
    thread: I64


def self_times(timeline: Timeline) -> SelfTime:
    """Every op's interval minus those of the ops inside it, on its own thread."""
    host = timeline.host
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    pieces: list[tuple[int, int, int, int]] = []
    for thread, at in rows_by(host.thread[ops]):
        _thread(timeline, ops[at], thread, pieces)
    table = np.array(pieces, np.int64).reshape(-1, 4)
    return SelfTime(table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def _thread(timeline: Timeline, ops: I64, thread: int, out: list[tuple[int, int, int, int]]) -> None:
    """A sweep: an op that starts interrupts the one around it, which goes on when it ends."""
    host = timeline.host
    ops = ops[np.lexsort((-host.end[ops], host.start[ops]))]
    stack: list[tuple[int, int]] = []
    now = 0
    for row, start, end in zip(ops.tolist(), host.start[ops].tolist(), host.end[ops].tolist(), strict=True):
        now = _advance(stack, now, start, thread, out)
        now = start
        stack.append((end, row))
    _advance(stack, now, None, thread, out)


def _advance(
    stack: list[tuple[int, int]],
    now: int,
    until: int | None,
    thread: int,
    out: list[tuple[int, int, int, int]],
) -> int:
    """Give the time from ``now`` to ``until`` to the open ops, innermost first."""
    while stack:
        end, row = stack[-1]
        stop = end if until is None else min(end, until)
        if stop > now:
            out.append((now, stop, row, thread))
            now = stop
        if until is not None and end > until:
            return until
        stack.pop()
    return now
