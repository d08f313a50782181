"""Compiled code that is in pieces, or compiled again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import Clipper
from rooflight.attribution.launches import enclosing
from rooflight.attribution.modules import GRAPH, REGION, named
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import I64, Mask, among, distinct, rows_by, values_at

#: Dynamo's number of the function, and which of its compilations this is.
_NAME = re.compile(re.escape(REGION) + r"([0-9]{1,9})/([0-9]{1,9})")
_SHOWN = 5
_AGAIN = 2


@rule(
    "graph-breaks",
    "Compiled code is in pieces or compiled again",
    regime="latency",
    why="What lies between two compiled pieces runs op by op: nothing fuses across it, and each piece has "
    "its guards checked and its own launches.  Compiling again takes seconds, each time.",
    fix="TORCH_LOGS=graph_breaks,recompiles names the line and the guard; fullgraph=True makes a break an "
    "error.  Take .item(), print and data-dependent branches out of the model; "
    "torch._dynamo.mark_dynamic or dynamic=True for sizes that change.",
    false_alarms="Parts that were compiled one by one on purpose (torch.compile of each block) are pieces "
    "too.  Variants that were compiled before the recording cost only a longer check of guards.",
)
def graph_breaks(facts: Facts) -> Iterator[Found]:
    """Regions of two compiled functions or more with kernels of single ops between or inside them; a
    function's third compilation or a later one, or two of them side by side."""
    regions = _Regions.of(facts)
    between = _between(facts, regions)
    seen = [*_pieces(facts, regions, between), *_again(regions)]
    if seen:
        assumption = "what would fuse across the breaks is not known"
        yield Found.over(facts.instants(between), tuple(seen), None, assumption)


@dataclass(frozen=True, slots=True)
class _Regions:
    """Host rows of the compiled regions that begin in the counted time, each with its function's number and
    which compilation of it ran."""

    rows: I64
    function: I64
    compilation: I64

    @classmethod
    def of(cls, facts: Facts) -> _Regions:
        timeline = facts.timeline
        found = {i: m for i, name in enumerate(timeline.names) if (m := _NAME.match(name))}
        numbers = np.full((len(timeline.names) + 1, 2), -1, np.int64)
        for i, m in found.items():
            numbers[i] = int(m[1]), int(m[2])
        host = timeline.host
        rows = np.flatnonzero(among(host.name, np.array(list(found), np.int64)))
        rows = rows[Clipper(facts.windows).within(host.start[rows], host.start[rows] + 1) > 0]
        return cls(rows, *numbers[host.name[rows]].T)


def _between(facts: Facts, regions: _Regions) -> I64:
    """Kernels of single ops that are launched between the regions of a step on their thread, or inside of a
    region and outside of the graph that was made of it."""
    timeline, rows = facts.timeline, facts.kernel_rows
    eager = np.array([i for i, n in enumerate(timeline.names) if n.startswith("aten::")], np.int64)
    rows = rows[among(facts.op_names[rows], eager)]
    launch = facts.links.launch[rows]
    rows, launch = rows[launch >= 0], launch[launch >= 0]
    graphs = np.flatnonzero(named(timeline, GRAPH))
    around = enclosing(timeline, launch, regions.rows)
    # Only where graphs are marked can the code around them be told from them.
    broken = (around >= 0) & (graphs.size > 0) & (enclosing(timeline, launch, graphs) < 0)
    found: I64 = rows[np.where(around >= 0, broken, _between_two(facts, launch, regions.rows))]
    return found


def _between_two(facts: Facts, launch: I64, regions: I64) -> Mask:
    """Which launches have a region before and one after them, in their own step and on their thread."""
    host, result = facts.timeline.host, np.zeros(launch.size, bool)
    regions_of = dict(rows_by(host.thread[regions]))
    for thread, mine in rows_by(host.thread[launch]):
        if thread in regions_of:
            starts = np.sort(host.start[regions[regions_of[thread]]])
            at = host.start[launch[mine]]
            place = np.searchsorted(starts, at, side="right")
            before = values_at(starts, place - 1, -1)
            after = values_at(starts, np.where(place < starts.size, place, -1), -1)
            step = _steps(facts, np.concatenate((before, at, after))).reshape(3, -1)
            known = (place > 0) & (place < starts.size)
            result[mine] = known & (step[0] == step[1]) & (step[1] == step[2])
    return result


def _steps(facts: Facts, at: I64) -> I64:
    """The number of steps that have begun at each instant."""
    begins = np.sort(np.array([s.start for s in facts.spans], np.int64))
    return np.searchsorted(begins, at, side="right")


def _pieces(facts: Facts, regions: _Regions, between: I64) -> Iterator[Seen]:
    functions = distinct(regions.function).size
    if functions > 1 and between.size:
        time, often = int(facts.own_ns[between].sum()), facts.times(between.size)
        text = (
            f"regions of {functions} compiled functions: {facts.times(regions.rows.size)}; kernels of single "
            f"ops between or inside them: {often}, {facts.each(time)}, {facts.share(time)}"
        )
        yield Seen(text, facts.most_of(between))


def _again(regions: _Regions) -> Iterator[Seen]:
    found = []
    for function, mine in rows_by(regions.function):
        ran = distinct(regions.compilation[mine]).tolist()
        if len(ran) > 1 or ran[-1] >= _AGAIN:
            found.append((-ran[-1], function, ", ".join(f"{function}/{c}" for c in ran[-_SHOWN:])))
    for compilations, _, names in sorted(found)[:_SHOWN]:
        yield Seen(f"one function was compiled {1 - compilations} times or more; what ran: {names}")
