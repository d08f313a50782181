"""GPU event to launch, launch to op and module (DEFINITIONS §5).

A GPU event belongs to the API call with the same ``correlation``, never by ``External id``, which is
another number space.  The op is the innermost one on the calling thread that encloses the launch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import I64, HostKind, Mask
from rooflight.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Links:
    """Row-aligned with ``timeline.gpu``: rows of ``timeline.host``, -1 where there is none.

    ``ambiguous`` counts correlation ids that several launches carry and that therefore link nothing.
    """

    launch: I64
    op: I64
    module: I64
    ambiguous: int


def link(timeline: Timeline) -> Links:
    """Tie every GPU event to its launch, op and nn.Module."""
    launch, ambiguous = _launches(timeline)
    linked = np.flatnonzero(launch >= 0)
    op, module = np.full(launch.size, -1, np.int64), np.full(launch.size, -1, np.int64)
    op[linked] = enclosing(timeline, launch[linked], timeline.host.kind == HostKind.CPU_OP)
    frames = _module_frames(timeline)
    if frames.any():
        module[linked] = enclosing(timeline, launch[linked], frames)
    return Links(launch, op, module, ambiguous)


def _launches(timeline: Timeline) -> tuple[I64, int]:
    host, gpu = timeline.host, timeline.gpu
    calls = np.flatnonzero(
        ((host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER)) & (host.correlation >= 0)
    )
    result = np.full(len(gpu), -1, np.int64)
    if calls.size == 0:
        return result, 0
    # Runtime rows first: the driver row of the same call lies inside it.
    calls = calls[np.lexsort((host.end[calls], host.start[calls], host.kind[calls], host.correlation[calls]))]
    ids, first, counts = np.unique(host.correlation[calls], return_index=True, return_counts=True)
    twice = _several_processes(timeline, calls, first, counts)
    at = np.minimum(np.searchsorted(ids, gpu.correlation), ids.size - 1)
    found = (ids[at] == gpu.correlation) & (gpu.correlation >= 0) & ~twice[at]
    result[found] = calls[first[at[found]]]
    used = np.isin(ids[twice], gpu.correlation)
    return result, int(np.count_nonzero(used))


def _several_processes(timeline: Timeline, calls: I64, first: I64, counts: I64) -> Mask:
    """Correlation ids that calls of more than one process carry: files of several ranks in one."""
    pids = {pid: i for i, pid in enumerate({pid for pid, _ in timeline.threads})}
    of_thread = np.array([pids[pid] for pid, _ in timeline.threads], np.int64)
    pid = of_thread[timeline.host.thread[calls]]
    twice: Mask = np.zeros(first.size, bool)
    many = np.flatnonzero(counts > 1)
    if many.size:
        low, high = np.minimum.reduceat(pid, first), np.maximum.reduceat(pid, first)
        twice[many] = low[many] != high[many]
    return twice


def _module_frames(timeline: Timeline) -> Mask:
    names = np.array([n.startswith("nn.Module: ") for n in timeline.names], bool)
    mask: Mask = timeline.host.kind == HostKind.PYTHON
    if names.size:
        mask &= names[timeline.host.name]
    return mask


def enclosing(timeline: Timeline, rows: I64, among: Mask) -> I64:
    """For each host row, the innermost row of ``among`` on its thread that encloses its start; else -1.

    Innermost: latest start, then shortest.
    """
    host = timeline.host
    return innermost(
        host.thread[rows], host.start[rows],
        np.flatnonzero(among), host.thread[among], host.start[among], host.end[among],
    )  # fmt: skip


def innermost(
    query_thread: np.ndarray,
    query_at: I64,
    rows: I64,
    thread: np.ndarray,
    start: I64,
    end: I64,
) -> I64:
    """For each instant on a thread, the row whose interval encloses it, latest start first; else -1."""
    result = np.full(query_at.size, -1, np.int64)
    # One sweep over both, by thread and time; at equal times intervals open before queries look.
    threads = np.concatenate((thread, query_thread))
    times = np.concatenate((start, query_at))
    is_query = np.concatenate((np.zeros(rows.size, np.int8), np.ones(query_at.size, np.int8)))
    shorter_last = np.concatenate((-end, np.zeros(query_at.size, np.int64)))
    order = np.lexsort((shorter_last, is_query, times, threads))
    stack: list[tuple[int, int]] = []
    current = -1
    ends, ids = end.tolist(), rows.tolist()
    for i, t, who in zip(order.tolist(), times[order].tolist(), threads[order].tolist(), strict=True):
        if who != current:
            stack.clear()
            current = who
        if i < len(ids):
            while stack and stack[-1][0] <= t:
                stack.pop()
            stack.append((ends[i], ids[i]))
        else:
            while stack and stack[-1][0] <= t:
                stack.pop()
            if stack:
                result[i - len(ids)] = stack[-1][1]
    return result


def op_parents(timeline: Timeline) -> I64:
    """For each host row that is an op, the row of the op around its start on its thread; else -1.

    A child may end a little after its parent (clocks are read twice): only its start has to lie inside.
    """
    host = timeline.host
    parent = np.full(len(host), -1, np.int64)
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    ops = ops[np.lexsort((-host.end[ops], host.start[ops], host.thread[ops]))]
    stack: list[tuple[int, int]] = []
    current = -1
    for row, thread, start, end in zip(
        ops.tolist(), host.thread[ops].tolist(), host.start[ops].tolist(), host.end[ops].tolist(), strict=True
    ):
        if thread != current:
            stack.clear()
            current = thread
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            parent[row] = stack[-1][1]
        stack.append((end, row))
    return parent
