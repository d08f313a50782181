"""Costs of kernels that no op of the recording explains, from the same kernels where one does.

What was launched before the recording began, and what a graph replays, has no op of its own.  A program
repeats itself, though: where the kernels of a stream are, one after the other, those of another part of the
recording, they do the same work.  Nothing is taken where several such parts disagree, or where a kernel
took a time that its sibling's work does not explain.  Every cost that is found so is ``inferred``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from rooflight.attribution.launches import Links
from rooflight.attribution.replays import GRAPH_LAUNCHES
from rooflight.attribution.runs import common_runs
from rooflight.cost.launches import LaunchCosts
from rooflight.cost.model import INFERRED, UNKNOWN, Cost
from rooflight.trace.tables import I64, Mask, combined, distinct, in_order_of, numbered, rows_by, values_at
from rooflight.trace.timeline import Timeline

#: Kernels that follow each other alike before they are taken for the same part of the program: where grids
#: are recorded, and where names alone have to tell.
SHORTEST_RUN, SHORTEST_BY_NAME = 8, 24
#: A sibling's time is within this factor: two sizes of one kernel differ by more, two runs of it by less.
ALIKE = 2.0
#: How often collectives come round before their order is taken for a rule.
_ROUNDS = 2
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Streams:
    """GPU events in the order of their streams and, within each, of their start: ``rows`` of the GPU table;
    ``symbol`` tells what ran, ``meaning`` its work where an op tells it; ``wanted`` are the events whose
    cost is sought (``lacking``) and all others without an op of their own.  ``grids``: symbols tell them."""

    rows: I64
    stream: I64
    symbol: I64
    meaning: I64
    wanted: Mask
    lacking: Mask
    grids: bool


def with_siblings(timeline: Timeline, links: Links, costs: LaunchCosts) -> LaunchCosts:
    """The costs, unknown ones of kernels without an op of their own taken from siblings that have one."""
    streams = _streams(timeline, links, costs)
    if not streams.lacking.any() or streams.wanted.all():
        return costs
    sibling = np.full(streams.rows.size, -1, np.int64)
    for found in (_by_runs, _by_rounds, _by_name):
        open_ = streams.lacking & (sibling < 0)
        sibling[open_] = found(timeline, streams)[open_]
    at = np.flatnonzero(_useful(costs, streams, sibling))
    return _taken(timeline, costs, streams.rows[at], streams.rows[sibling[at]])


def _streams(timeline: Timeline, links: Links, costs: LaunchCosts) -> _Streams:
    gpu, rows = timeline.gpu, timeline.valid_gpu
    rows = rows[in_order_of(gpu.stream[rows], gpu.start[rows])]
    unknown = np.array([c.origin == UNKNOWN for c in costs.costs], bool)[costs.index[rows]]
    launch = links.launch[rows]
    graphs = np.array(timeline.name_ids(*GRAPH_LAUNCHES), np.int64)
    wanted = (launch < 0) | np.isin(values_at(timeline.host.name, launch, -1), graphs)
    lacking = wanted & unknown
    # A grid tells more than a name, where the recording has one for all.
    shape = gpu.shape[rows]
    grids = bool((shape[lacking] >= 0).all())
    shape = shape if grids else np.full(rows.size, -1, np.int32)
    op = costs.op[rows]
    work = combined(values_at(timeline.host.name, op, -1), values_at(timeline.host.args, op, -1))
    return _Streams(
        rows=rows,
        stream=gpu.stream[rows].astype(np.int64),
        symbol=numbered(combined(gpu.name[rows], gpu.kind[rows], shape))[1],
        # What has no op is told by its cost alone.
        meaning=combined(work, np.where(op >= 0, -1, costs.index[rows])),
        wanted=wanted,
        lacking=lacking,
        grids=grids,
    )


def _by_runs(timeline: Timeline, streams: _Streams) -> I64:
    """Siblings of kernels that stand in a run of other kernels alike; places in ``streams``, -1 for none."""
    wanted, mine, shortest = _sequence(streams, streams.wanted, -1)
    known, theirs, _ = _sequence(streams, ~streams.wanted, -2)
    meaning = np.where(theirs < 0, -1, streams.meaning[theirs])
    sibling = np.full(streams.rows.size, -1, np.int64)
    for run in common_runs(wanted, known, meaning, shortest):
        agreed = np.flatnonzero(run.agreed)
        sibling[mine[run.start + agreed]] = theirs[run.known + agreed]
    return np.where(_took_alike(timeline, streams, sibling), sibling, -1)


def _sequence(streams: _Streams, chosen: Mask, border: int) -> tuple[I64, I64, I64]:
    """The symbols of the chosen events, stream by stream with a symbol of its own after each; where each
    stands in ``streams`` (-1: a border); how long a run from there on has to be."""
    symbols, places, shortest = [], [], []
    at, least = np.flatnonzero(chosen), SHORTEST_RUN if streams.grids else SHORTEST_BY_NAME
    for nth, (_, of_stream) in enumerate(rows_by(streams.stream[at])):
        here = at[of_stream]
        symbols.append(np.append(streams.symbol[here], border - 2 * nth))
        places.append(np.append(here, -1))
        shortest.append(np.full(here.size + 1, least))
    return tuple(np.concatenate([_NONE, *parts]) for parts in (symbols, places, shortest))  # type: ignore[return-value]


def _by_rounds(timeline: Timeline, streams: _Streams) -> I64:
    """Siblings of what ran on a stream before its first launch in the file, where that goes on in rounds.

    All collectives may have one name, so that no run tells them apart: their order does."""
    del timeline
    sibling = np.full(streams.rows.size, -1, np.int64)
    for _, at in rows_by(streams.stream):
        known = np.flatnonzero(~streams.wanted[at])
        first = int(known[0]) if known.size else 0
        if not first or known.size < at.size - first:
            continue
        period = _period(combined(streams.symbol[at[first:]], streams.meaning[at[first:]]))
        if period and _goes_back(streams.symbol[at], first, period):
            sibling[at[:first]] = at[first + (np.arange(first) - first) % period]
    return sibling


def _period(content: I64) -> int:
    """The shortest distance at which all of it repeats, and does so twice; 0 for none."""
    for period in np.flatnonzero(content == content[0])[1:].tolist():
        if period * _ROUNDS > content.size:
            break
        if np.array_equal(content[period:], content[:-period]):
            return int(period)
    return 0


def _goes_back(symbol: I64, first: int, period: int) -> bool:
    """Whether what stands before ``first`` is in the same rounds."""
    expected = symbol[first + (np.arange(first) - first) % period]
    return bool(np.array_equal(symbol[:first], expected))


def _by_name(timeline: Timeline, streams: _Streams) -> I64:
    """Siblings by name and grid alone: where all those with an op, two at least, do the same work, and most
    of the recording's work has an op: less would not show every use of a kernel."""
    known = np.flatnonzero(~streams.wanted)
    if not streams.grids or 2 * known.size < streams.rows.size:
        return np.full(streams.rows.size, -1, np.int64)
    symbols, first, place, count = np.unique(
        streams.symbol[known], return_index=True, return_inverse=True, return_counts=True
    )
    meaning = streams.meaning[known]
    same = np.ones(symbols.size, bool)
    same[place[meaning != meaning[first][place]]] = False
    table = np.full(int(streams.symbol.max()) + 1, -1, np.int64)
    only = same & (count >= _ROUNDS)
    table[symbols[only]] = known[first[only]]
    sibling = table[streams.symbol]
    return np.where(_took_alike(timeline, streams, sibling), sibling, -1)


def _took_alike(timeline: Timeline, streams: _Streams, sibling: I64) -> Mask:
    """Where the sibling took about as long.  Collectives wait for each other, and may take any time."""
    gpu = timeline.gpu
    length = (gpu.end - gpu.start)[streams.rows].astype(np.float64)
    theirs = np.where(sibling < 0, 0.0, length[sibling])
    alike: Mask = (length <= ALIKE * theirs) & (theirs <= ALIKE * length)
    return alike & (sibling >= 0)


def _useful(costs: LaunchCosts, streams: _Streams, sibling: I64) -> Mask:
    """Where the sibling's cost is known."""
    known = np.array([c.origin != UNKNOWN for c in costs.costs], bool)
    index = values_at(costs.index, np.where(sibling < 0, -1, streams.rows[sibling]), -1)
    useful: Mask = streams.lacking & (index >= 0) & known[index]
    return useful


def _taken(timeline: Timeline, costs: LaunchCosts, rows: I64, siblings: I64) -> LaunchCosts:
    """The costs with those of ``siblings`` for ``rows``, marked as inferred."""
    index, op = costs.index.copy(), costs.op.copy()
    table = {cost: i for i, cost in enumerate(costs.costs)}
    names = values_at(timeline.host.name, costs.op[siblings], -1)
    pair = combined(costs.index[siblings], names)
    for key in distinct(pair).tolist():
        at = np.flatnonzero(pair == key)
        name = int(names[at[0]])
        cost = _inferred(costs.costs[costs.index[siblings[at[0]]]], timeline.names[name] if name >= 0 else "")
        index[rows[at]] = table.setdefault(cost, len(table))
    op[rows] = costs.op[siblings]
    return LaunchCosts(tuple(table), index, op)


def _inferred(cost: Cost, op: str) -> Cost:
    where = "the same kernel elsewhere in this recording"
    told = f"as {op} of {where}" if op else f"as {where}"
    return replace(cost, origin=INFERRED, reason=f"{told}; {cost.reason}" if cost.reason else told)
