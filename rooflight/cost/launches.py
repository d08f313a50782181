"""A cost for every GPU event: that of the op that launched it, attached once.

The op that is costed is the innermost one around the launch that has a formula and recorded dims; its
cost goes to its main kernel (:mod:`rooflight.cost.assign`).  Copies and collectives carry their size
in their own args.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import replace

from rooflight.attribution.launches import Links, enclosing
from rooflight.attribution.replays import GRAPH_LAUNCHES
from rooflight.cost.assign import DurationsDecideError, assign, untimed
from rooflight.cost.collective import ANNOTATED
from rooflight.cost.estimate import estimate
from rooflight.cost.model import UNKNOWN, Cost, OpCall
from rooflight.cost.registry import family_of
from rooflight.cost.relatives import JOINING, completed, is_backward, related, typed
from rooflight.kernels import KernelName
from rooflight.trace.tables import (
    I32,
    I64,
    GpuKind,
    HostKind,
    Mask,
    among,
    combined,
    distinct,
    in_order,
    numbered,
    values_at,
)
from rooflight.trace.timeline import OpArgs, Timeline

_NO_LAUNCH = Cost(reason="no launch in the file")
_NO_OP = Cost(reason="no op encloses the launch")
_REPLAYED = Cost(reason="graph replay: no op of its own; an eager recording beside it names its kernels")
_COMPOSITE = Cost(reason="composite")
_NOT_VALID = Cost(reason="no usable interval")

#: Ops with more kernels than this are rare, and hardly two of them alike.
_ALIKE_UP_TO = 16
#: Name and args of a recorded call, by index; -1 is none.
_Key = tuple[int, int]
_NOBODY: _Key = (-1, -1)
#: A call with its parent and the op that computes its gradients.
_CallKey = tuple[_Key, _Key, _Key]


@dataclass(frozen=True, slots=True)
class LaunchCosts:
    """``index`` is row-aligned with ``timeline.gpu`` and points into ``costs``; ``op`` is the host row
    of the op that was costed, -1 where none was."""

    costs: tuple[Cost, ...]
    index: I32
    op: I64


def attach(timeline: Timeline, links: Links, kernels: Mapping[int, KernelName]) -> LaunchCosts:
    """Cost every GPU event; ``kernels`` holds what each name tells, by its index."""
    return _Attacher(timeline, links, kernels).run()


class _Attacher:
    def __init__(self, timeline: Timeline, links: Links, kernels: Mapping[int, KernelName]) -> None:
        self._timeline = timeline
        self._links = links
        self._kernels = kernels
        self._parents = links.parent
        self._length = timeline.gpu.end - timeline.gpu.start
        self._of_byte: dict[str, Cost] = {}
        self._decoded: dict[int, dict[str, Any]] = {}
        self._calls: dict[_CallKey, tuple[OpCall, Cost]] = {}
        self._by_type: dict[tuple[_CallKey, str | None], tuple[OpCall, Cost]] = {}
        self._families = [family_of(n) for n in timeline.names]
        self._related = np.array([related(n) for n in timeline.names], bool)
        self._table: dict[Cost, int] = {}
        self._index = np.zeros(len(timeline.gpu), np.int32)
        self._op = np.full(len(timeline.gpu), -1, np.int64)

    def run(self) -> LaunchCosts:
        gpu = self._timeline.gpu
        self._index[:] = self._place(_NOT_VALID)
        rows = self._timeline.valid_gpu
        kind, comm = gpu.kind[rows], gpu.comm[rows]
        self._copies(rows[kind != GpuKind.KERNEL])
        own_args = (kind == GpuKind.KERNEL) & (comm >= 0)
        self._collectives(rows[own_args])
        self._ops(rows[(kind == GpuKind.KERNEL) & ~own_args])
        self._announced(rows[(kind == GpuKind.KERNEL) & ~own_args])
        self._replayed(rows)
        return LaunchCosts(tuple(self._table), self._index, self._op)

    def _place(self, cost: Cost) -> int:
        return self._table.setdefault(cost, len(self._table))

    def _copies(self, rows: I64) -> None:
        gpu, names = self._timeline.gpu, self._timeline.names
        sizes = np.maximum(gpu.bytes[rows], -1)
        key = combined(gpu.name[rows], sizes)
        first, copy = numbered(key)
        named = zip(gpu.name[rows[first]].tolist(), sizes[first].tolist(), strict=True)
        places = [self._place(self._copied(names[name], size)) for name, size in named]
        self._index[rows] = np.array(places, np.int32)[copy] if places else []

    def _copied(self, name: str, size: int) -> Cost:
        """The cost of a copy or fill of so many bytes: so many times that of one byte."""
        if size <= 0:
            return estimate(OpCall(op=name, gpu_args={} if size < 0 else {"bytes": size}))
        if name not in self._of_byte:
            self._of_byte[name] = estimate(OpCall(op=name, gpu_args={"bytes": 1}))
        byte = self._of_byte[name]
        if byte.bytes is None:
            return byte
        link = None if byte.link_bytes is None else byte.link_bytes * size
        read, written = (byte.bytes_read or 0) * size, (byte.bytes_written or 0) * size
        return replace(byte, bytes_read=read, bytes_written=written, link_bytes=link)

    def _collectives(self, rows: I64) -> None:
        gpu, comms = self._timeline.gpu, self._timeline.comms
        known: dict[int, int] = {}
        for row, comm in zip(rows.tolist(), gpu.comm[rows].tolist(), strict=True):
            if comm not in known:
                known[comm] = self._place(estimate(OpCall(op="record_param_comms", comm=comms[comm])))
            self._index[row] = known[comm]

    def _ops(self, rows: I64) -> None:
        links = self._links
        launch, op = links.launch[rows], links.op[rows]
        self._index[rows[launch < 0]] = self._place(_NO_LAUNCH)
        self._index[rows[(launch >= 0) & (op < 0)]] = self._place(_NO_OP)
        rows = rows[op >= 0]
        chosen = self._costed_ops(links.op[rows])
        self._index[rows[chosen < 0]] = self._place(_COMPOSITE)
        rows, chosen = rows[chosen >= 0], chosen[chosen >= 0]
        self._op[rows] = chosen
        self._launches(rows, chosen)

    def _announced(self, rows: I64) -> None:
        """Collectives whose op has no sizes, from the annotation inside it that shows the one tensor and in
        which nothing else was launched."""
        names = self._timeline.names
        rows, around = self._in_annotations(rows)
        for row, annotation in zip(rows.tolist(), around.tolist(), strict=True):
            _, cost = self._call((self._key(annotation), _NOBODY, _NOBODY))
            if cost.bytes is not None:
                source = f"dims of {names[self._timeline.host.name[annotation]]}"
                self._index[row] = self._place(replace(cost, reason=cost.reason or source))
                self._op[row] = annotation

    def _in_annotations(self, rows: I64) -> tuple[I64, I64]:
        """Those of ``rows`` that are alone in the annotation of a collective inside their op, which has no
        sizes; and the host rows of these annotations."""
        host, links = self._timeline.host, self._links
        shown = np.array([n.startswith(ANNOTATED) for n in self._timeline.names], bool)[host.name]
        shown &= (host.kind == HostKind.ANNOTATION) & (host.args >= 0)
        around = enclosing(self._timeline, links.launch[rows], np.flatnonzero(shown))
        rows, around = rows[around >= 0], around[around >= 0]
        _, place, count = np.unique(around, return_inverse=True, return_counts=True)
        op = links.op[rows]
        collective = np.array([family == "collective" for family in self._families], bool)
        inside = (op >= 0) & collective[host.name[op]] & (host.start[around] >= host.start[op])
        sizeless = np.array([cost.bytes is None for cost in self._table], bool)[self._index[rows]]
        told = inside & sizeless & (count[place] == 1)
        return rows[told], around[told]

    def _replayed(self, rows: I64) -> None:
        """What a graph launch started and nothing explains: the op around the launch is the work of none."""
        names = np.array(self._timeline.name_ids(*GRAPH_LAUNCHES), np.int64)
        rows = rows[np.isin(values_at(self._timeline.host.name, self._links.launch[rows], -1), names)]
        unknown = np.array([c.origin == UNKNOWN for c in self._table], bool)
        rows = rows[unknown[self._index[rows]]]
        self._index[rows] = self._place(_REPLAYED)

    def _launches(self, rows: I64, ops: I64) -> None:
        """Rows with the op that each is costed by, ops with equally many kernels together."""
        order = in_order(ops)
        rows = rows[order]
        ops, first, count = np.unique(ops[order], return_index=True, return_counts=True)
        for n in distinct(count).tolist():
            of = np.flatnonzero(count == n)
            launched = rows[first[of, None] + np.arange(n)]
            if n <= _ALIKE_UP_TO:
                self._alike(ops[of], launched)
            else:
                self._each(ops[of], launched)

    def _alike(self, ops: I64, launched: I64) -> None:
        """Ops with their kernels, a row each: of those with one call and the same kernels what each kernel
        costs is found once, unless it rests on how long they took."""
        key = combined(*self._call_columns(ops), *self._timeline.gpu.name[launched].T)
        first, group = numbered(key)
        columns = zip(ops[first].tolist(), self._timeline.gpu.name[launched[first]].tolist(), strict=True)
        places = [self._untimed(op, names) for op, names in columns]
        table = np.array(places, np.int32).reshape(first.size, launched.shape[1])
        self._index[launched] = table[group]
        timed = table[group, 0] < 0
        self._each(ops[timed], launched[timed])

    def _untimed(self, op: int, names: list[int]) -> list[int]:
        """Where the costs of an op's kernels stand; -1 where that rests on how long they took."""
        try:
            return self._places(op, names, untimed(len(names)))
        except DurationsDecideError:
            return [-1] * len(names)

    def _each(self, ops: I64, launched: I64) -> None:
        """Ops whose kernels share by duration, one by one."""
        for op, rows in zip(ops.tolist(), launched, strict=True):
            names = self._timeline.gpu.name[rows].tolist()
            self._index[rows] = self._places(op, names, self._length[rows].tolist())

    def _costed_ops(self, innermost: I64) -> I64:
        """The op to cost for each innermost op; -1 when an op inside it is costed already."""
        ops, place = np.unique(innermost, return_inverse=True)
        chosen = self._with_formula(ops)
        # An op reached from a helper below it must not repeat what its own leaf has cost.
        repeated = (chosen != ops) & self._around(chosen)[chosen]
        return np.where(repeated, -1, chosen)[place]

    def _with_formula(self, ops: I64) -> I64:
        """The innermost op with a formula and recorded inputs at or around each op; else the op itself."""
        host, outside = self._timeline.host, len(self._timeline.host)
        known = np.array([family is not None for family in self._families], bool)
        # It names the collective in args of the kernel; where those are missing, the op around it has dims.
        known[self._timeline.name_ids("record_param_comms")] = False
        found = np.append((host.args >= 0) & known[host.name], True)
        at = np.where(found, np.arange(outside + 1), np.append(self._parents, -1) % (outside + 1))
        # Each round looks twice as far up.
        while (searching := np.flatnonzero(~found[at])).size:
            at[searching] = at[at[searching]]
        return np.where(at[ops] == outside, ops, at[ops])

    def _around(self, ops: I64) -> Mask:
        """The host rows around any of these ops."""
        inside = np.zeros(len(self._timeline.host) + 1, bool)
        while ops.size:
            ops = distinct(self._parents[ops])
            ops = ops[(ops >= 0) & ~inside[ops]]
            inside[ops] = True
        return inside

    def _call_columns(self, ops: I64) -> tuple[I64, ...]:
        """What :meth:`_call_key` of each op holds, as columns."""
        host = self._timeline.host
        relatives = np.full((ops.size, 4), -1, np.int64)
        for at in np.flatnonzero(self._lacks_values(ops)).tolist():
            _, parent, backward = self._call_key(int(ops[at]))
            relatives[at] = *parent, *backward
        return host.name[ops].astype(np.int64), host.args[ops].astype(np.int64), *relatives.T

    def _lacks_values(self, ops: I64) -> Mask:
        """The ops whose rows may lack what a relative has."""
        host = self._timeline.host
        lacking, args = self._related[host.name[ops]], host.args[ops]
        valued = [i for i in distinct(args[lacking]).tolist() if i >= 0 and self._args(i)["concrete"]]
        return lacking & ~among(args, np.array(valued, np.int64))

    def _call_key(self, op: int) -> _CallKey:
        own = self._key(op)
        if not self._related[own[0]] or self._op_call(own).concrete:
            return own, _NOBODY, _NOBODY
        seq = int(self._timeline.host.seq[op])
        backward = -1 if seq in self._doubtful else self._backward.get(seq, -1)
        return own, self._key(int(self._parents[op])), self._key(backward)

    def _call(self, key: _CallKey) -> tuple[OpCall, Cost]:
        own, parent, backward = key
        if key not in self._calls:
            call = self._op_call(own)
            if parent != _NOBODY or backward != _NOBODY:
                call = completed(call, self._op_call(parent), self._op_call(backward))
            self._calls[key] = (call, estimate(call))
        return self._calls[key]

    def _typed(self, op: int, dtype: str | None) -> tuple[OpCall, Cost]:
        """The call with the element type that the name of its longest kernel tells."""
        key = (self._call_key(op), dtype)
        if key not in self._by_type:
            known = self._call(key[0])
            call = typed(known[0], dtype)
            self._by_type[key] = known if call is known[0] else (call, estimate(call))
        return self._by_type[key]

    def _key(self, op: int) -> _Key:
        host = self._timeline.host
        return _NOBODY if op < 0 else (int(host.name[op]), int(host.args[op]))

    def _op_call(self, key: _Key) -> OpCall:
        name, args = key
        return OpCall(self._timeline.names[name] if name >= 0 else "", **self._args(args))

    def _args(self, args: int) -> dict[str, Any]:
        """What a row recorded of its inputs, once for all rows alike."""
        if args not in self._decoded:
            self._decoded[args] = _decoded(self._timeline.op_args[args]) if args >= 0 else {}
        return self._decoded[args]

    @cached_property
    def _backward(self) -> dict[int, int]:
        """Sequence number of a forward op to the op that computes its gradients.

        The number stands on that op or on the autograd node around it.
        """
        host = self._timeline.host
        found: dict[int, int] = {}
        names = [i for i, name in enumerate(self._timeline.names) if is_backward(name)]
        for op in np.flatnonzero(np.isin(host.name, names) & (host.kind == HostKind.CPU_OP)).tolist():
            at = op
            while at >= 0 and not (host.seq[at] >= 0 and host.fwd_thread[at] > 0):
                at = int(self._parents[at])
            if at >= 0:
                found.setdefault(int(host.seq[at]), op)
        return found

    @cached_property
    def _doubtful(self) -> frozenset[int]:
        """Sequence numbers that more than one concatenation carries: an op that needs no gradient has the
        number of the next one that does."""
        host = self._timeline.host
        seq = host.seq[among(host.name, np.array(self._timeline.name_ids(*JOINING), np.int64))]
        numbers, count = np.unique(seq[seq >= 0], return_counts=True)
        return frozenset(numbers[count > 1].tolist())

    def _places(self, op: int, kernels: list[int], lengths: list[int]) -> list[int]:
        """Where the costs of an op's kernels stand, of these names, which took ``lengths`` ns."""
        call, cost = self._call(self._call_key(op))
        names = [self._kernels[n] for n in kernels]
        if cost.reason == "dtype_unknown":
            call, cost = self._typed(op, _told_type(names, lengths))
        parts = [(name.family, length) for name, length in zip(names, lengths, strict=True)]
        return [self._place(part) for part in assign(cost, call, parts)]


def _told_type(names: list[KernelName], lengths: list[int]) -> str | None:
    """The element type that the name of the longest kernel tells."""
    if len({name.dtype for name in names}) == 1:
        return names[0].dtype
    return names[lengths.index(max(lengths))].dtype


def op_call(op: str, args: OpArgs | None) -> OpCall:
    """The call that a row recorded; what was not recorded, or is broken, is empty."""
    return OpCall(op) if args is None else OpCall(op, **_decoded(args))


def _decoded(args: OpArgs) -> dict[str, Any]:
    *columns, extra = args.decoded()
    lists = (tuple(c) if isinstance(c, list) else () for c in columns)
    return {
        **dict(zip(("dims", "types", "strides", "concrete"), lists, strict=True)),
        "gpu_args": extra if isinstance(extra, dict) else {},
        "results": args.decoded_results(),
        "source": args.source,
    }
