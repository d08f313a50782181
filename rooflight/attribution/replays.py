"""Kernels of graph replays, named from an eager recording of the same run (KINETO, section 2.7).

One launch starts all kernels of a graph, so none of them has an op of its own.  Where the program also ran
eagerly, its launches come in the order in which the graph was captured: a part of a replay whose kernels
are, name by name and grid by grid, those of a part of the eager recording was launched by the same ops.

A kernel is named where every part of the eager recording that fits as far agrees on the op and its inputs,
and where all that the op launches is in the part.  Nothing is guessed beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.attribution.runs import Run, common_runs
from rooflight.trace.tables import (
    I32,
    I64,
    GpuKind,
    HostEvents,
    HostKind,
    Mask,
    combined,
    distinct,
    values_at,
)
from rooflight.trace.timeline import OpArgs, Timeline

GRAPH_LAUNCHES = ("cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch")
#: A run has so many kernels, or is the whole graph where that is shorter.
SHORTEST_RUN = 8
#: Ops around a named op that come with it: one of them may be the one whose cost is known.
MAX_AROUND = 4
_NOWHERE = np.empty(0, np.int64)
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True, slots=True)
class Replays:
    """A recording whose host rows have been extended by the ops that graph kernels are named from: empty
    intervals, which enclose nothing.  ``rows`` are the GPU events that were named."""

    timeline: Timeline
    links: Links
    rows: I64


def named_replays(timeline: Timeline, links: Links, eager: Timeline, eager_links: Links) -> Replays:
    """Give the kernels of graph replays the ops of the same kernels in ``eager``, where they are certain."""
    replayed, known = _replayed(timeline, links), _launched(eager, eager_links)
    if not replayed.size or not known.size:
        return Replays(timeline, links, replayed[:0])
    symbols = _Symbols(timeline, replayed)
    graphs = _graphs(symbols.of(timeline, replayed), links.launch[replayed])
    around = _around(eager_links, known)
    runs = common_runs(graphs.content, symbols.of(eager, known), _meaning(eager, around), graphs.shortest)
    return _extended(timeline, links, replayed, graphs, eager, _named_ops(runs, around, graphs))


def _replayed(timeline: Timeline, links: Links) -> I64:
    """The kernels that graph launches started, launch by launch in order of their start."""
    gpu = timeline.gpu
    rows, from_graph = _kernels(timeline, links)
    rows = rows[from_graph]
    return rows[np.lexsort((gpu.graph_node[rows], gpu.start[rows], links.launch[rows]))]


def _launched(timeline: Timeline, links: Links) -> I64:
    """The kernels that were launched one by one, in the order of their launches."""
    rows, from_graph = _kernels(timeline, links)
    rows = rows[~from_graph]
    launch = links.launch[rows]
    return rows[np.lexsort((timeline.gpu.start[rows], launch, timeline.host.start[launch]))]


def _kernels(timeline: Timeline, links: Links) -> tuple[I64, Mask]:
    """Kernels that have a launch, and whether that is a graph's."""
    rows = timeline.valid_gpu
    rows = rows[(timeline.gpu.kind[rows] == GpuKind.KERNEL) & (links.launch[rows] >= 0)]
    from_graph = np.isin(timeline.host.name[links.launch[rows]], timeline.name_ids(*GRAPH_LAUNCHES))
    return rows, from_graph


class _Symbols:
    """A number for what tells a kernel: its name, and its grid where all the replayed ones have one."""

    def __init__(self, timeline: Timeline, replayed: I64) -> None:
        self._table: dict[tuple[str, object], int] = {}
        shapes = distinct(timeline.gpu.shape[replayed]).tolist()
        self._with_grid = all(s >= 0 and timeline.launch_shape(s).grid for s in shapes)

    def of(self, timeline: Timeline, rows: I64) -> I64:
        """The numbers of these GPU events; equal ones of two recordings are equal."""
        gpu = timeline.gpu
        shape = gpu.shape[rows] if self._with_grid else np.full(rows.size, -1, np.int32)
        pairs, place = np.unique(np.stack((gpu.name[rows], shape)), axis=1, return_inverse=True)
        numbers = [self._number(timeline, name, shape) for name, shape in pairs.T.tolist()]
        return np.array(numbers, np.int64)[place.ravel()]

    def _number(self, timeline: Timeline, name: int, shape: int) -> int:
        geometry = timeline.launch_shape(shape) if shape >= 0 else None
        key = timeline.names[name], geometry and (geometry.grid, geometry.block)
        return self._table.setdefault(key, len(self._table))


@dataclass(frozen=True, slots=True)
class _Graphs:
    """The distinct graphs one after the other: ``content`` holds the symbols of their kernels, with a
    symbol of its own after each graph; ``shortest`` the least length of a run from there on.

    ``place`` is row-aligned with the replayed kernels and points into ``content``; ``launch`` is the host
    row of their launch.  ``graph`` tells the graph of each place.
    """

    content: I64
    shortest: I64
    graph: I64
    place: I64
    launch: I64


def _graphs(symbols: I64, launch: I64) -> _Graphs:
    borders = np.flatnonzero(np.diff(launch, prepend=-1, append=-1))
    first: dict[bytes, int] = {}
    parts: list[I64] = []
    place = np.empty(symbols.size, np.int64)
    size = 0
    for low, high in pairwise(borders.tolist()):
        content = symbols[low:high]
        begin = first.setdefault(content.tobytes(), size)
        if begin == size:
            parts.append(np.append(content, -1 - len(parts)))
            size += parts[-1].size
        place[low:high] = np.arange(begin, begin + high - low)
    lengths = np.array([p.size for p in parts], np.int64)
    return _Graphs(
        content=np.concatenate(parts),
        shortest=np.repeat(np.minimum(SHORTEST_RUN, lengths - 1), lengths),
        graph=np.repeat(np.arange(lengths.size), lengths),
        place=place,
        launch=launch,
    )


def _around(links: Links, known: I64) -> I64:
    """Rows of hosts: the innermost op of each kernel, the op around that, and so on; -1 beyond."""
    levels = [links.op[known]]
    for _ in range(MAX_AROUND):
        levels.append(values_at(links.parent, levels[-1], -1))
    return np.stack(levels)


def _meaning(eager: Timeline, around: I64) -> I64:
    """A number for each kernel: equal where names and inputs of the ops around are."""
    host = eager.host
    columns = [values_at(column, level, -1) for level in around for column in (host.name, host.args)]
    return combined(*columns)


@dataclass(frozen=True, slots=True)
class _Ops:
    """Calls of ops that replays repeat, graph by graph: the row of each in the eager recording, the call
    around it (-1: none) and its graph.  ``of_place`` is the innermost call at each place of the graphs."""

    row: I64
    parent: I64
    graph: I64
    of_place: I64


def _named_ops(runs: list[Run], around: I64, graphs: _Graphs) -> _Ops:
    """The calls whose kernels are in one run, all of them, and mean the same wherever the run occurs."""
    place = np.concatenate([_NOWHERE, *(r.start + np.flatnonzero(r.agreed) for r in runs)])
    known = np.concatenate([_NOWHERE, *(r.known + np.flatnonzero(r.agreed) for r in runs)])
    run = np.repeat(np.arange(len(runs)), np.array([np.count_nonzero(r.agreed) for r in runs], np.int64))
    rows = around[:, known]
    # A call is told by its run too: the same part of the eager recording may stand for several layers.
    width = int(around.max(initial=0)) + 2
    calls, call, here = np.unique(run * width + rows + 1, return_inverse=True, return_counts=True)
    call = call.reshape(rows.shape)
    there = np.bincount(around[around >= 0], minlength=width)
    row = calls % width - 1
    whole = (row >= 0) & (here == there[row])
    kept = np.logical_and.accumulate(whole[call], axis=0)
    parent = np.full(calls.size, -1, np.int64)
    for inner, outer, both in zip(call[:-1], call[1:], kept[1:], strict=True):
        parent[inner[both]] = outer[both]
    graph = np.zeros(calls.size, np.int64)
    graph[call] = graphs.graph[place]
    of_place = np.full(graphs.content.size, -1, np.int64)
    of_place[place[kept[0]]] = call[0][kept[0]]
    return _ordered(_Ops(row, parent, graph, of_place), distinct(call[kept]))


def _ordered(ops: _Ops, used: I64) -> _Ops:
    """Only the calls that are used, graph by graph."""
    used = used[np.argsort(ops.graph[used], kind="stable")]
    place = np.full(ops.row.size, -1, np.int64)
    place[used] = np.arange(used.size)
    parent = values_at(place, ops.parent[used], -1)
    return _Ops(ops.row[used], parent, ops.graph[used], values_at(place, ops.of_place, -1))


def _extended(
    timeline: Timeline, links: Links, replayed: I64, graphs: _Graphs, eager: Timeline, ops: _Ops
) -> Replays:
    """Every launch of a graph has its own copies of the calls, as rows at the end of the host's."""
    first = np.flatnonzero(np.diff(graphs.launch, prepend=-1))
    launch, graph = graphs.launch[first], graphs.graph[graphs.place[first]]
    begin, count = (np.searchsorted(ops.graph, graph, side) for side in _SIDES)
    count = count - begin
    copies = np.repeat(np.arange(launch.size), count)
    base = np.cumsum(count) - count
    call = np.arange(copies.size) - base[copies] + begin[copies]
    # From a call to its copy of a launch.
    shift = len(timeline.host) + base - begin
    parent = np.where(ops.parent[call] < 0, -1, ops.parent[call] + shift[copies])
    of_row = ops.of_place[graphs.place]
    named = of_row >= 0
    nth = np.repeat(np.arange(launch.size), np.diff(first, append=replayed.size))
    op = links.op.copy()
    op[replayed[named]] = (of_row + shift[nth])[named]
    return Replays(
        timeline=_with_rows(timeline, launch[copies], eager, ops.row[call]),
        links=replace(links, op=op, parent=np.concatenate((links.parent, parent))),
        rows=replayed[named],
    )


def _with_rows(timeline: Timeline, launch: I64, eager: Timeline, rows: I64) -> Timeline:
    """The recording with empty rows for the ops ``rows`` of ``eager``, each at the start of its launch."""
    names, name = _texts(timeline.names, eager.names, eager.host.name[rows])
    used, args = np.unique(eager.host.args[rows], return_inverse=True)
    inputs = tuple(eager.op_args[i] if i >= 0 else OpArgs() for i in used.tolist())
    known = {
        "name": name,
        "kind": np.full(rows.size, HostKind.CPU_OP),
        "start": timeline.host.start[launch],
        "end": timeline.host.start[launch],
        "thread": timeline.host.thread[launch],
        "args": np.where(eager.host.args[rows] < 0, -1, args.ravel() + len(timeline.op_args)),
    }
    columns = {f.name: getattr(timeline.host, f.name) for f in fields(HostEvents)}
    joined = {
        f: np.concatenate((column, known.get(f, np.full(rows.size, -1)))).astype(column.dtype)
        for f, column in columns.items()
    }
    return replace(timeline, names=names, host=HostEvents(**joined), op_args=(*timeline.op_args, *inputs))


def _texts(mine: tuple[str, ...], theirs: tuple[str, ...], used: I32) -> tuple[tuple[str, ...], I64]:
    """The names with those of another table that are used, and the place of each of these."""
    known = {name: i for i, name in enumerate(mine)}
    ids, place = np.unique(used, return_inverse=True)
    texts = [theirs[i] for i in ids.tolist()]
    new = [text for text in texts if text not in known]
    known |= {text: len(mine) + i for i, text in enumerate(new)}
    return (*mine, *new), np.array([known[text] for text in texts], np.int64)[place.ravel()]
