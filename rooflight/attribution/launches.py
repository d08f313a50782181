"""GPU event to launch, launch to op, module and compiled region (DEFINITIONS §5).

A GPU event belongs to the API call with the same ``correlation``, never by ``External id``, which is
another number space.  The op is the innermost one on the calling thread that encloses the launch.  What
the backward pass launches belongs to the module of its forward op.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.attribution.forward import forward_ops, processes
from rooflight.attribution.modules import GRAPH, REGION, module_frames, named
from rooflight.attribution.nesting import Nest, Spans, holding
from rooflight.trace.tables import I64, HostKind, Mask, among, distinct, values_at
from rooflight.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Links:
    """Row-aligned with ``timeline.gpu``: rows of ``timeline.host``, -1 where there is none.

    ``forward`` is the forward op of what a backward op launched.  ``module`` is the innermost nn.Module
    around the launch, else that of the forward op, else ``region``: the compiled code around either.
    ``parent`` is row-aligned with ``timeline.host``: the op around each op.
    ``ambiguous`` counts correlation ids that several launches carry and that therefore link nothing.
    """

    launch: I64
    op: I64
    forward: I64
    module: I64
    region: I64
    parent: I64
    ambiguous: int


def link(timeline: Timeline) -> Links:
    """Tie every GPU event to its launch, op, forward op, nn.Module and compiled region."""
    launch, ambiguous = _launches(timeline)
    linked = np.flatnonzero(launch >= 0)
    op, parent = _ops(timeline, launch[linked])
    homes = _homes(timeline, launch[linked])

    def column(values: I64) -> I64:
        return _spread(values, linked, launch.size)

    return Links(
        launch=launch,
        op=column(op),
        forward=column(homes.forward),
        module=column(homes.module),
        region=column(homes.region),
        parent=parent,
        ambiguous=ambiguous,
    )


def _spread(column: I64, rows: I64, size: int) -> I64:
    """A column of ``size`` with these values at ``rows``, else -1."""
    result = np.full(size, -1, np.int64)
    result[rows] = column
    return result


def _launches(timeline: Timeline) -> tuple[I64, int]:
    host, gpu = timeline.host, timeline.gpu
    calls = np.flatnonzero(
        ((host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER)) & (host.correlation >= 0)
    )
    result = np.full(len(gpu), -1, np.int64)
    if calls.size == 0:
        return result, 0
    calls = calls[_by_correlation(timeline, calls)]
    number = host.correlation[calls]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    ids, twice = number[first], _several_processes(timeline, calls, first)
    at = np.minimum(np.searchsorted(ids, gpu.correlation), ids.size - 1)
    found = (ids[at] == gpu.correlation) & (gpu.correlation >= 0) & ~twice[at]
    result[found] = calls[first[at[found]]]
    used = among(ids[twice], gpu.correlation) if twice.any() else twice
    return result, int(np.count_nonzero(used))


def _by_correlation(timeline: Timeline, calls: I64) -> I64:
    """The order of calls by their number, where several have one by kind and time: runtime calls first,
    since the driver call of the same launch lies inside."""
    host = timeline.host
    order = np.argsort(host.correlation[calls], kind="stable")
    same = np.flatnonzero(np.diff(host.correlation[calls[order]]) == 0)
    tied = distinct(np.concatenate((same, same + 1)))
    rows = calls[order[tied]]
    keys = (host.end[rows], host.start[rows], host.kind[rows], host.correlation[rows])
    order[tied] = order[tied][np.lexsort(keys)]
    return order


def _several_processes(timeline: Timeline, calls: I64, first: I64) -> Mask:
    """Correlation ids that calls of more than one process carry: files of several ranks in one."""
    twice: Mask = np.zeros(first.size, bool)
    many = np.flatnonzero(np.diff(first, append=calls.size) > 1)
    if many.size:
        pid = processes(timeline)[timeline.host.thread[calls]]
        low, high = np.minimum.reduceat(pid, first), np.maximum.reduceat(pid, first)
        twice[many] = low[many] != high[many]
    return twice


def _ops(timeline: Timeline, rows: I64) -> tuple[I64, I64]:
    """The innermost op around each of ``rows``, and the op around each host row that is an op."""
    host = timeline.host
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    nest = Nest(_spans(timeline, ops))
    around = values_at(ops, nest.innermost(host.thread[rows], host.start[rows]), -1)
    return around, _spread(values_at(ops, nest.parents(), -1), ops, len(host))


@dataclass(frozen=True, slots=True)
class _Homes:
    """What launches belong to beside their op, row-aligned with them."""

    forward: I64
    module: I64
    region: I64


def _homes(timeline: Timeline, rows: I64) -> _Homes:
    pairs = forward_ops(timeline)
    backward = enclosing(timeline, rows, pairs.backward)
    forward = values_at(_spread(pairs.forward, pairs.backward, len(timeline.host)), backward, -1)
    region = _regions(timeline, rows, forward)
    module = _modules(timeline, rows, backward, forward)
    return _Homes(forward, np.where(module >= 0, module, region), region)


def _modules(timeline: Timeline, rows: I64, backward: I64, forward: I64) -> I64:
    """The module around each launch, or around the forward op of the backward op around it: whichever
    of module and backward op is nearer to the launch says more, as where a checkpoint runs it again."""
    start, frames = timeline.host.start, np.flatnonzero(module_frames(timeline))
    own, theirs = (enclosing(timeline, r, frames) for r in (rows, forward))
    farther = (own >= 0) & (values_at(start, own, 0) < values_at(start, backward, 0)) & (backward >= 0)
    return np.where((theirs >= 0) & ((own < 0) | farther), theirs, own)


def _regions(timeline: Timeline, rows: I64, forward: I64) -> I64:
    """The compiled region around each launch or its forward op, else the compiled graph around it."""
    region = np.full(rows.size, -1, np.int64)
    for prefix in (REGION, GRAPH):
        among = np.flatnonzero(named(timeline, prefix))
        for at in (rows, forward):
            region = np.where(region >= 0, region, enclosing(timeline, at, among))
    return region


def enclosing(timeline: Timeline, rows: I64, among: I64) -> I64:
    """For each host row, the innermost of the rows ``among`` on its thread that encloses its start; -1
    when there is none, and for the row -1."""
    host = timeline.host
    result = np.full(rows.size, -1, np.int64)
    if among.size == 0:
        return result
    there = np.zeros(len(timeline.threads), bool)
    there[host.thread[among]] = True
    asked = np.flatnonzero(rows >= 0)
    asked = asked[there[host.thread[rows[asked]]]]
    if asked.size:
        at = host.start[rows[asked]]
        if 2 * asked.size < among.size:
            # Of what encloses none of a few instants, no nest need be made.
            among = among[holding(host.start[among], host.end[among], at)]
        found = Nest(_spans(timeline, among)).innermost(host.thread[rows[asked]], at)
        result[asked] = values_at(among, found, -1)
    return result


def op_parents(timeline: Timeline) -> I64:
    """For each host row that is an op, the row of the op around its start on its thread; else -1.

    A child may end a little after its parent (clocks are read twice): only its start has to lie inside.
    """
    return _ops(timeline, np.empty(0, np.int64))[1]


def _spans(timeline: Timeline, rows: I64) -> Spans:
    host = timeline.host
    return Spans(host.thread[rows], host.start[rows], host.end[rows])
