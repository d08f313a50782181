"""GPU event to launch, launch to op and module (DEFINITIONS §5).

A GPU event belongs to the API call with the same ``correlation``, never by ``External id``, which is
another number space.  The op is the innermost one on the calling thread that encloses the launch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.attribution.nesting import Spans, innermost, parents
from rooflight.trace.tables import I64, HostKind, Mask, values_at
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
    """For each host row, the innermost row of ``among`` on its thread that encloses its start; else -1."""
    host = timeline.host
    candidates = np.flatnonzero(among)
    found = innermost(_spans(timeline, candidates), host.thread[rows], host.start[rows])
    return values_at(candidates, found, -1)


def op_parents(timeline: Timeline) -> I64:
    """For each host row that is an op, the row of the op around its start on its thread; else -1.

    A child may end a little after its parent (clocks are read twice): only its start has to lie inside.
    """
    parent = np.full(len(timeline.host), -1, np.int64)
    ops = np.flatnonzero(timeline.host.kind == HostKind.CPU_OP)
    parent[ops] = values_at(ops, parents(_spans(timeline, ops)), -1)
    return parent


def _spans(timeline: Timeline, rows: I64) -> Spans:
    host = timeline.host
    return Spans(host.thread[rows], host.start[rows], host.end[rows])
