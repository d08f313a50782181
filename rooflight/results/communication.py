"""What the ranks say to each other: collectives that are alike as rows, and how fast they were.

A row is what one rank saw.  With several ranks its rates rest on the transfer alone (DEFINITIONS §8), with
one on the kernels' durations, which hold the waiting for the others too: the rate is then a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.collectives import Calls, call_rows
from rooflight.attribution.hosts import hosts_of_comms
from rooflight.attribution.intervals import F64, Clipper
from rooflight.collectives import Communication
from rooflight.cost.collective import is_exchange, message_bytes
from rooflight.cost.model import Cost
from rooflight.regimes.partition import Partition
from rooflight.results.medians import median
from rooflight.results.result import Messages
from rooflight.results.splits import skew
from rooflight.results.stages import Stages
from rooflight.trace.builder import Interner
from rooflight.trace.tables import I64, combined, values_at
from rooflight.units import pct, us

#: Rows of the table; kinds with more message sizes than these go together by powers of two.
MOST_ROWS = 64
MOST_SIZES = 8
#: Bytes beyond these are no message.
_MOST_BYTES = 1 << 62


def communication(s: Stages, calls: Calls) -> tuple[list[Communication], int, Messages]:
    """The rows of a recording, the longest first, how many there are with those that are cut off, and what
    each call moves.  ``calls`` are those of :func:`collective_calls`."""
    rows = call_rows(s.timeline, s.is_comm)
    if not rows.size:
        return [], 0, Messages(*(rows,) * 4, np.empty(0, np.float64), rows)
    told = _told(s, calls, rows)
    members = _members(told, calls)
    length = calls.end - calls.start
    exposed = _exposed_ns(s.partitions, told.device, calls)
    made = [_row(s, told, calls, of, length[of], exposed[of]) for of in members]
    order = sorted(range(len(made)), key=lambda i: _place(made[i]))[:MOST_ROWS]
    row = np.full(rows.size, -1, np.int64)
    for place, i in enumerate(order):
        row[members[i]] = place
    local = np.array([told.local[members[i][0]] for i in order], np.int64)
    messages = Messages(row, told.message, told.bus, told.received, told.skew, local)
    return [made[i] for i in order], len(made), messages


@dataclass(frozen=True, slots=True)
class _Told:
    """Of each call, in columns; -1 (NaN) is unknown."""

    kinds: Sequence[str]
    dtypes: Sequence[str | None]
    kind: I64
    dtype: I64
    device: I64
    message: I64
    bus: I64
    received: I64
    skew: F64
    local: I64


def _told(s: Stages, calls: Calls, rows: I64) -> _Told:
    gpu, costs = s.timeline.gpu, s.costs
    kinds, kind = _kinds(s, calls, rows)
    dtypes: Interner[str | None] = Interner()
    pair = combined(costs.index[rows], kind)
    _, first, of = np.unique(pair, return_index=True, return_inverse=True)
    known = [_sizes(costs.costs[costs.index[rows[i]]], kinds[kind[i]]) for i in first.tolist()]
    dtype = np.array([dtypes[costs.costs[costs.index[rows[i]]].dtype] for i in first.tolist()], np.int64)
    message, bus, received = (np.array(c, np.int64)[of] for c in zip(*known, strict=True))
    comm = gpu.comm[rows].astype(np.int64)
    spread = np.array([*(skew(c) for c in s.timeline.comms), np.nan])
    return _Told(
        kinds=kinds,
        dtypes=tuple(dtypes),
        kind=kind,
        dtype=dtype[of],
        device=gpu.device[rows].astype(np.int64),
        message=message,
        bus=bus,
        received=received,
        skew=np.where(received >= 0, spread[comm], np.nan),
        local=hosts_of_comms(s.timeline)[comm],
    )


def _kinds(s: Stages, calls: Calls, rows: I64) -> tuple[list[str], I64]:
    """What each call does: as it is recorded, else as the op says that it is costed by."""
    op = values_at(s.timeline.host.name, s.costs.op[rows], -1)
    found: Interner[str] = Interner()
    _, first, of = np.unique(combined(calls.kind, op), return_index=True, return_inverse=True)
    named = ((calls.kinds[calls.kind[i]], int(op[i])) for i in first.tolist())
    kind = [found[_kind(recorded, s.timeline.names[o] if o >= 0 else "")] for recorded, o in named]
    return list(found), np.array(kind, np.int64)[of]


def _kind(recorded: str, op: str) -> str:
    named = op.rsplit(":", 1)[-1]
    better = message_bytes(recorded, 0, 0) is None and message_bytes(named, 0, 0) is not None
    return (named if better else recorded).strip("_")


def _sizes(cost: Cost, kind: str) -> tuple[int, int, int]:
    """Message and bus bytes of a collective, and the bytes that an all-to-all receives."""
    message = message_bytes(kind, cost.bytes_read, cost.bytes_written)
    received = cost.bytes_written if is_exchange(kind) else None
    return _known(message), _known(cost.link_bytes), _known(received)


def _known(size: int | None) -> int:
    return size if size is not None and 0 <= size <= _MOST_BYTES else -1


def _members(told: _Told, calls: Calls) -> list[I64]:
    """The calls of each row."""
    alike = combined(told.kind, told.dtype, told.device, calls.group, _ranked(calls.size))
    alike = np.unique(alike, return_inverse=True)[1].astype(np.int64)
    size = _ranked(told.message)
    pairs = np.unique(combined(alike, size), return_index=True)[1]
    many = np.bincount(alike[pairs], minlength=1)[alike] > MOST_SIZES
    # Sizes that go together come after all those that stand alone; unknown ones before them.
    power = np.where(told.message < 0, 0, np.frexp(told.message.astype(np.float64))[1] + 1)
    key = combined(alike, np.where(many, int(size.max()) + 1 + power, size))
    order = np.argsort(key, kind="stable")
    begins = np.flatnonzero(np.append(True, key[order][1:] != key[order][:-1]))
    return np.split(order, begins[1:])


def _ranked(values: I64) -> I64:
    """Equal numbers for equal values, however large these are."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _exposed_ns(partitions: Mapping[int, Partition], device: I64, calls: Calls) -> I64:
    """How long nothing but communication ran during each call."""
    found = np.zeros(device.size, np.int64)
    for d, partition in partitions.items():
        mine = np.flatnonzero(device == d)
        found[mine] = Clipper(partition.communication).within(calls.start[mine], calls.end[mine])
    return found


def _row(s: Stages, told: _Told, calls: Calls, of: I64, length: I64, exposed: I64) -> Communication:
    speaker = int(of[0])
    size, time, alone = int(calls.size[speaker]), int(length.sum()), int(exposed.sum())
    return Communication(
        kind=told.kinds[told.kind[speaker]],
        group=calls.groups[calls.group[speaker]],
        ranks=size if size > 0 else None,
        dtype=told.dtypes[told.dtype[speaker]],
        device=s.timeline.device_keys[told.device[speaker]],
        count=int(of.size),
        sizes=int(np.unique(told.message[of], return_index=True)[1].size),
        message_bytes=_middle(told.message[of]),
        bus_bytes=_middle(told.bus[of]),
        time_us=us(time),
        p50_us=us(median(length)),
        exposed_us=us(alone),
        exposed_pct=pct(alone, time),
    )


def _middle(sizes: I64) -> int | None:
    """The lower median, which is one that occurred; unknown where any is."""
    ordered = np.sort(sizes)
    return None if ordered[0] < 0 else int(ordered[(ordered.size - 1) // 2])


def _place(row: Communication) -> tuple[object, ...]:
    """By time, of equals by what they are, never by their place in the file."""
    sizes = (row.message_bytes or 0, row.ranks or 0)
    return -row.time_us, row.kind, row.group, row.dtype or "", row.device, *sizes
