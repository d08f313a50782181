"""What an execution trace tells of the ops of a recording, and the two put together.

The profiler drops what an ``ExecutionTraceObserver`` beside it keeps: the element types of lists of tensors,
the dims of lists of more than 30, arguments that are words, and every result.  Both number an op alike
(``Record function id`` here, ``rf_id`` there), so that each op finds its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rooflight.errors import Refused
from rooflight.protocol import Flag
from rooflight.trace.tables import I32, I64, HostKind
from rooflight.trace.timeline import EXECUTION_TRACE, OpArgs, Timeline

_RANK = re.compile(r"rank[_-]?(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A distinct call, in the words of the profiler: one entry per argument in each column.

    The type of a list of tensors is a list of their element types, "" for one that was not given.
    ``results`` is one (dims, element type) per tensor that came out.
    """

    dims: tuple[Any, ...]
    types: tuple[Any, ...]
    strides: tuple[Any, ...]
    concrete: tuple[str, ...]
    results: tuple[tuple[Any, str], ...]


@dataclass(frozen=True)
class Execution:
    """The ops of one process: ``record`` is the id of each, ``name`` indexes ``names``, ``call`` indexes
    ``calls``.  ``pid`` is that of the process, "" when it is not told; ``unread`` counts nodes that could
    not be understood."""

    source: str
    pid: str
    names: tuple[str, ...]
    calls: tuple[Call, ...]
    record: I64
    name: I32
    call: I32
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """Ops of a timeline (host rows) and the place of each in the execution trace; ``shared`` counts the
    ids that are in both, of which those that name the same op are the rows, ``own`` those of the timeline.
    ``elsewhere`` says that it ran in a process that the timeline does not know."""

    rows: I64
    at: I64
    shared: int
    own: int
    elsewhere: bool

    @property
    def fits(self) -> bool:
        """Whether the two can be of one process: ids are small numbers, and any two recordings share some."""
        return not self.elsewhere and self.rows.size > 0 and 2 * self.rows.size >= self.shared


def match(timeline: Timeline, execution: Execution) -> Match:
    """Where the ids of both are the same; an id that stands twice on one side says nothing."""
    host = timeline.host
    ops = np.flatnonzero((host.kind == HostKind.CPU_OP) & (host.record > 0))
    ids = np.intersect1d(_alone(host.record[ops]), _alone(execution.record), assume_unique=True)
    rows = ops[_places(host.record[ops], ids)]
    at = _places(execution.record, ids)
    number = {name: i for i, name in enumerate(timeline.names)}
    names = np.array([number.get(name, -1) for name in execution.names] or [-1], np.int64)
    same = names[execution.name[at]] == host.name[rows]
    pids = {pid for pid, _ in timeline.threads}
    elsewhere = execution.pid != "" and execution.pid not in pids
    return Match(rows[same], at[same], ids.size, ops.size, elsewhere)


def _alone(column: I64) -> I64:
    values, counts = np.unique(column, return_counts=True)
    once: I64 = values[counts == 1]
    return once


def _places(column: I64, values: I64) -> I64:
    """Where each of ``values`` stands in ``column``, which holds each of them once."""
    order = np.argsort(column, kind="stable")
    places: I64 = order[np.searchsorted(column[order], values)]
    return places


def joined(timeline: Timeline, execution: Execution) -> Timeline:
    """A timeline whose ops have what the execution trace recorded of them.

    What the profiler recorded stays; what it lacks is completed.  Ops with an id that the execution trace
    does not hold are counted in a flag.  Raises :class:`~rooflight.errors.Refused` when the two are not of
    one process: too few of the ids in both name the same op.
    """
    found = match(timeline, execution)
    if not found.fits:
        raise _foreign(timeline.source, execution, found)
    host = timeline.host
    table, calls = timeline.op_args, execution.calls
    pairs = (host.args[found.rows] + np.int64(1)) * len(calls) + execution.call[found.at]
    distinct, place = np.unique(pairs, return_inverse=True)
    added = [
        completed(table[own - 1] if own else OpArgs(), calls[call])
        for own, call in (divmod(pair, len(calls)) for pair in distinct.tolist())
    ]
    args = host.args.copy()
    args[found.rows] = len(table) + place
    beside = f" with {execution.source}"
    return replace(
        timeline,
        source=timeline.source.removesuffix(beside) + beside,
        host=replace(host, args=args),
        op_args=(*table, *added),
        flags=(*timeline.flags, *_unjoined(execution, found)),
    )


def _unjoined(execution: Execution, found: Match) -> list[Flag]:
    missing = found.own - found.rows.size
    if not missing:
        return []
    detail = f"ops that {execution.source} does not tell of, among {found.own} with a record id"
    if execution.unread:
        detail += f"; {execution.unread} of its nodes could not be understood"
    return [Flag("field_unavailable", missing, detail)]


def _foreign(source: str, execution: Execution, found: Match) -> Refused:
    if not found.own:
        what = "the ops of the trace have no record ids: no execution trace was recorded beside it"
    elif found.elsewhere:
        what = f"it is of process {execution.pid}, which the trace does not know"
    else:
        what = f"of {found.shared} record ids in both, {found.rows.size} name the same op"
    return Refused(
        f"{execution.source} is no execution trace of {source}: {what}",
        where=execution.source,
        hint="record both at once: torch.profiler.profile(execution_trace_observer=...)",
    )


# -- which trace an execution trace belongs to -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trace that an execution trace may belong to, without the recording itself."""

    source: str
    rank: int | None
    match: Match

    @classmethod
    def of(cls, timeline: Timeline, execution: Execution) -> Self:
        """What is asked of a timeline."""
        return cls(timeline.source, timeline.meta.rank, match(timeline, execution))


def all_joined(timelines: Sequence[Timeline], executions: Sequence[Execution]) -> list[Timeline]:
    """The timelines, each with the execution trace of its process, if that is there.

    Raises :class:`~rooflight.errors.Refused` where :func:`owner` does, or two claim one timeline.
    """
    claimed: dict[int, Execution] = {}
    for execution in executions:
        i = owner([Candidate.of(t, execution) for t in timelines], execution)
        if i in claimed:
            raise Refused(
                f"both {claimed[i].source} and {execution.source} are execution traces of "
                f"{timelines[i].source}",
                hint="give each trace its own",
            )
        claimed[i] = execution
    return [joined(t, claimed[i]) if i in claimed else t for i, t in enumerate(timelines)]


def owner(candidates: Sequence[Candidate], execution: Execution) -> int:
    """The place of the candidate that an execution trace belongs to.

    Ranks of one program number their ops alike.  Of several that fit (on several hosts the process ids may
    be the same, or are not told) the number of ops that fit decides, else the rank in the execution trace's
    name.  Raises :class:`~rooflight.errors.Refused` where none of these does, or none fits.
    """
    size = [c.match.rows.size for c in candidates]
    fitting = [i for i, c in enumerate(candidates) if c.match.fits]
    if not fitting:
        best = candidates[size.index(max(size))]
        raise _foreign(best.source, execution, best.match)
    most = max(size[i] for i in fitting)
    rank = _RANK.search(execution.source)
    for choice in (
        [i for i in fitting if size[i] == most],
        [i for i in fitting if rank and candidates[i].rank == int(rank[1])],
    ):
        if len(choice) == 1:
            return choice[0]
        fitting = choice or fitting
    raise Refused(
        f"{execution.source} fits several traces alike: {', '.join(candidates[i].source for i in fitting)}",
        where=execution.source,
        hint="name it after its rank (rank_3), or analyse each rank with its own execution trace",
    )


# -- one op ------------------------------------------------------------------------------------------


def completed(own: OpArgs, call: Call) -> OpArgs:
    """The recorded inputs with what they lack, and the results."""
    dims, types, strides, concrete = (tuple(c) if isinstance(c, list) else () for c in own.decoded()[:4])
    mine = Call(dims, types, strides, concrete, ())
    inputs = _merged(mine, call) if mine.types or mine.dims else replace(call, results=())
    results = _json(call.results) if call.results else b""
    if inputs == mine:
        return replace(own, results=results)
    return OpArgs(
        dims=_json(inputs.dims),
        types=_json(inputs.types),
        strides=_json(inputs.strides),
        concrete=_json(inputs.concrete),
        extra=own.extra,
        results=results,
        source=EXECUTION_TRACE,
    )


def _merged(mine: Call, call: Call) -> Call:
    """Entry by entry: that of the profiler unless it is one that it drops; its numbers have more digits."""
    n = len(mine.dims)
    if len(mine.types) != n or len(call.types) != n:
        return mine
    strides = mine.strides if len(mine.strides) == n else call.strides
    concrete = mine.concrete if len(mine.concrete) == n else call.concrete
    rows = list(zip(mine.dims, mine.types, strides, concrete, strict=True))
    for i, (kind, theirs) in enumerate(zip(mine.types, call.types, strict=True)):
        if kind in ("", "TensorList") and isinstance(theirs, list):
            rows[i] = call.dims[i], theirs, call.strides[i], concrete[i]
        elif kind == "" and call.concrete[i]:
            rows[i] = mine.dims[i], kind, strides[i], call.concrete[i]
    dims, types, strides, concrete = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Call(dims, types, strides, concrete, ())


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
