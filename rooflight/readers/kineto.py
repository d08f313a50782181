"""Kineto traces: what the torch profiler writes, from 2021 to 2026.

The shape of an event, as far as it is read (pytorch/kineto, libkineto/src/output_json.cpp):

    {"ph": "X", "cat": "kernel", "name": "...", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2.0, "args": {...}}

``ts`` and ``dur`` are decimal microseconds.  Values may be quoted numbers, keys may come in any order,
categories have had several spellings; what is not read is skipped without being looked at.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from types import NoneType
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw

from rooflight.errors import NotATrace, TooLarge
from rooflight.readers import number
from rooflight.readers.events import EventStream
from rooflight.readers.kineto_categories import by_category
from rooflight.readers.kineto_rows import (
    INSTANT,
    NOTHING,
    RANGE,
    Args,
    Event,
    MemoryArgs,
    Range,
    Row,
    Scalar,
    lenient,
    mended,
    ranges,
    strict,
    with_texts,
)
from rooflight.readers.meta import read_meta
from rooflight.readers.repair import NAMES
from rooflight.readers.source import DEFAULT_LIMITS, Limits
from rooflight.trace.builder import Builder, GpuRows, HostRows, Times
from rooflight.trace.tables import GpuKind, HostKind
from rooflight.trace.timeline import Timeline

#: Categories, normalised case-insensitively (DEFINITIONS §3).
_GPU = {
    "kernel": GpuKind.KERNEL,
    "gpu_memcpy": GpuKind.MEMCPY,
    "memcpy": GpuKind.MEMCPY,
    "gpu_memset": GpuKind.MEMSET,
    "memset": GpuKind.MEMSET,
}
_HOST = {
    "cpu_op": HostKind.CPU_OP,
    "operator": HostKind.CPU_OP,
    "user_annotation": HostKind.ANNOTATION,
    "cuda_runtime": HostKind.RUNTIME,
    "runtime": HostKind.RUNTIME,
    "hip_runtime": HostKind.RUNTIME,
    "xpu_runtime": HostKind.RUNTIME,
    "cuda_driver": HostKind.DRIVER,
    "driver": HostKind.DRIVER,
    "xpu_driver": HostKind.DRIVER,
    "python_function": HostKind.PYTHON,
}
#: Kinds of GPU events are told from those of host rows by this offset.
_FIRST_GPU = 16
#: The chunks at both ends of a document have rows of no category.
_MOST_SURPRISES = 8
_CALLS = (HostKind.RUNTIME, HostKind.DRIVER)
#: Rows that 2021's profiler filed under its operators, though they are annotations.
_ANNOTATION = re.compile(r"ProfilerStep#\d+$|enumerate\(DataLoader\)#|Optimizer\.step#|Optimizer\.zero_grad#")
_COMM_FIELDS = {
    "collective": "Collective name",
    "in_nelems": "In msg nelems",
    "out_nelems": "Out msg nelems",
    "group_size": "Group size",
    "dtype": "dtype",
    "in_split": "In split size",
    "out_split": "Out split size",
    "group_name": "Process Group Name",
    "group_ranks": "Process Group Ranks",
    "sequence_in_group": "Seq",
}
#: The texts of several fields as one key: a JSON array without its brackets.
_joined = b",".join
#: Of what is no all-to-all.
_NO_SPLITS = "[]"
_EXTRA_FIELDS = ("kernel_backend", "kernel_num_gb", "kernel_flop", "kernel_kwargs")


def read(pieces: Any, source: str, *, limits: Limits = DEFAULT_LIMITS, salvage: bool = False) -> Timeline:
    """A timeline from the unpacked bytes of a trace; :class:`~rooflight.errors.Refused` says why not."""
    reader = _Reader(Builder(source), limits)
    stream = EventStream(iter(pieces), reader.decode, salvage=salvage)
    stream.run()
    if not reader.events and stream.cut_off is None:
        raise NotATrace("not a trace: traceEvents is empty, there are no events", where=source)
    builder = reader.builder
    if stream.unterminated:
        builder.flag("unterminated_array", 1, "the array of events has no closing bracket")
    _flag_repairs(builder, reader.repaired + stream.repaired)
    if stream.cut_off is not None:
        builder.flag("truncated", reader.events, f"salvaged: {stream.cut_off}; {reader.events} events kept")
    return builder.timeline(
        read_meta(stream.meta), salvaged=stream.cut_off is not None, is_annotation=_ANNOTATION.match
    )


def _flag_repairs(builder: Builder, repaired: Counter[str]) -> None:
    if repaired:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(repaired.items()))
        builder.flag("json_repaired", repaired.total(), f"the JSON was mended: {kinds}")
    if repaired[NAMES]:
        builder.flag("names_repaired", repaired[NAMES], "names had unescaped quotes; their ends were certain")


class _Reader:
    """Decodes chunks of events into the builder's columns."""

    def __init__(self, builder: Builder, limits: Limits) -> None:
        self.builder = builder
        self.events = 0
        self.repaired: Counter[str] = Counter()
        self._limits = limits
        self._classes = _Classes()
        self._surprises = 0

    def decode(self, data: memoryview, *, last_resort: bool = False) -> None:
        """Take a JSON array of events; strict and fast first, lenient where the chunk surprises."""
        if last_resort:
            events, kinds = mended(data)
            self._add(events)
            self.repaired += kinds
            return
        try:
            events = self._strict(data)
        except msgspec.ValidationError:
            self._add(lenient(data))
            return
        try:
            self._add(events, data)
        except number.NeedsText:
            self._add(with_texts(data), data)

    def _strict(self, data: memoryview) -> list[Row]:
        """The fastest road that takes the chunk; categories that keep surprising are not tried again."""
        if self._surprises < _MOST_SURPRISES:
            try:
                return by_category(data)
            except msgspec.ValidationError:
                self._surprises += 1
        return strict(data)

    def _add(self, rows: Sequence[Row], data: memoryview | None = None) -> None:
        """Take the rows that were decoded from ``data``."""
        by_cat: defaultdict[str | int, list[Any]] = defaultdict(list)
        for row in rows:
            by_cat[row.cat].append(row)
        events = [(self._classes[cat], found) for cat, found in by_cat.items() if isinstance(cat, str)]
        kept = [(kind, _on_gpu(found)) for kind, found in events if kind >= 0]
        # Times first: they are what may ask for the text again, and nothing must be added twice.
        times = _times([e for _, found in kept for e in found])
        end = 0
        for kind, found in kept:
            begin, end = end, end + len(found)
            own = times.part(begin, end)
            if kind < _FIRST_GPU:
                self.builder.add_host(self._host_rows(kind, found, own))
            else:
                self.builder.add_gpu(self._gpu_rows(kind - _FIRST_GPU, found, own))
        self._memory([e.args for e in by_cat.get(INSTANT, ()) if e.name == "[memory]"])
        if RANGE in by_cat:
            self._counters(by_cat[RANGE], data)
        self.events += len(rows)
        if self.events > self._limits.max_events:
            raise TooLarge(
                f"too large: more than the limit of {self._limits.max_events} events",
                hint="record fewer steps, or raise the limit",
            )

    def _host_rows(self, kind: int, events: list[Event], times: Times) -> HostRows:
        b = self.builder
        rows = HostRows(
            name=[b.names[e.name] for e in events],
            kind=kind,
            times=times,
            thread=[
                b.threads[who] for who in zip([e.pid for e in events], [e.tid for e in events], strict=True)
            ],
        )
        if kind in _CALLS:
            rows.correlation = _ids([e.args.correlation for e in events])
        elif kind == HostKind.CPU_OP:
            args = [e.args for e in events]
            rows.seq = _ids([a.sequence for a in args])
            rows.fwd_thread = _ids([a.fwd_thread for a in args])
            rows.record = _ids([a.record for a in args], none=0)
            rows.args = b.op_args.add(
                None
                if a.dims is NOTHING and a.types is NOTHING and a.kernel_backend is None
                else _joined((a.dims, a.types, a.strides, a.concrete, _extra(a)))
                for a in args
            )
        elif kind == HostKind.ANNOTATION:
            # That of a collective (nccl:all_reduce) shows the tensor whose size the op around it leaves out.
            rows.args = b.op_args.add(
                None if a.dims is NOTHING else _joined((a.dims, a.types, NOTHING, NOTHING, NOTHING))
                for a in (e.args for e in events)
            )
        return rows

    def _gpu_rows(self, kind: int, events: list[Event], times: Times) -> GpuRows:
        b = self.builder
        args = [e.args for e in events]
        devices = [e.pid if e.args.device is None else e.args.device for e in events]
        return GpuRows(
            name=[b.names[e.name] for e in events],
            kind=kind,
            times=times,
            device=[b.devices[d] for d in devices],
            stream=[
                b.streams[e.pid, d, e.args.context, e.tid if e.args.stream is None else e.args.stream]
                for e, d in zip(events, devices, strict=True)
            ],
            correlation=_ids([a.correlation for a in args]),
            graph_node=_ids([a.graph_node for a in args], none=0),
            bytes=_ids([a.bytes for a in args]),
            shape=b.shapes.add(
                None
                if a.grid is NOTHING and a.registers is NOTHING
                else _joined((a.grid, a.block, a.registers, a.shared_memory))
                for a in args
            ),
            comm=[-1 if a.collective is None else b.comms[_comm(a)] for a in args],
        )

    def _counters(self, rows: list[Event | Range], data: memoryview | None) -> None:
        """Metrics have names of their own, which the road of all events passes by: read once more there."""
        passed_by = data is not None and isinstance(rows[0], Event)
        for row in ranges(data) if data is not None and passed_by else rows:
            args = _metrics(row.args) if isinstance(row.args, Raw) else {}
            correlation = _id(args.pop("correlation", None))
            values = {
                metric: round(value)
                for metric, value in args.items()
                if "__" in metric and isinstance(value, int | float) and 0 <= value < 1 << 63
            }
            self.builder.add_counters(row.name, str(row.pid), _start(row.ts), correlation, values)

    def _memory(self, rows: list[MemoryArgs]) -> None:
        # Device type 0 is the host; the rest (1 CUDA, 6 HIP, ...) is device memory.
        on_device = [a for a in rows if a.device_type not in (None, 0, "0")]
        if on_device:
            self.builder.note_memory(
                _greatest([a.allocated for a in on_device]), _greatest([a.reserved for a in on_device])
            )


class _Classes(dict[str, int]):
    """Category to kind: that of a host row, ``_FIRST_GPU`` plus that of a GPU event, -1 for others."""

    def __missing__(self, cat: str) -> int:
        lower = cat.lower()
        if lower in _GPU:
            self[cat] = _FIRST_GPU + _GPU[lower]
        else:
            self[cat] = int(_HOST.get(lower, -1))
        return self[cat]


def _on_gpu(events: list[Event]) -> list[Event]:
    """Old names of copies were the host's too: only those on a device or stream are work.

    The events are of one category.
    """
    old = events[0].cat.lower() in ("memcpy", "memset")
    return [e for e in events if _placed(e.args)] if old else events


def _placed(a: Args) -> bool:
    return a.stream is not None or a.device is not None


def _times(events: Sequence[Event]) -> Times:
    """Start and duration in ns and why they are invalid; asks for text where binary would round."""
    n = len(events)
    starts: list[Any] = [e.ts for e in events]
    durs: list[Any] = [e.dur for e in events]
    both = starts + durs
    try:
        ns = number.column(both)
        return Times(ns[:n], ns[n:])
    except number.NeedsText:
        kinds = set(map(type, both))
    if Decimal not in kinds and Raw in kinds:
        return Times(*number.text_columns(starts, durs, UNSET))
    if Decimal not in kinds and float in kinds:
        # Binary loses digits that the text has; integers and texts lose nothing on the way.
        raise number.NeedsText
    return Times(*number.exact_columns(starts, durs, UNSET))


def _start(ts: Scalar) -> float:
    """Good enough to put rows in order, for which alone it is taken; 0 where there is none."""
    try:
        return float(ts or 0)
    except (ValueError, OverflowError):
        return 0.0


def _metrics(args: Raw) -> dict[str, Any]:
    with suppress(msgspec.DecodeError, RecursionError):
        found = msgspec.json.decode(args)
        return found if isinstance(found, dict) else {}
    return {}


def _extra(a: Args) -> bytes | Raw:
    if a.kernel_backend is None:
        return NOTHING
    return msgspec.json.encode({f: getattr(a, f) for f in _EXTRA_FIELDS})


def _comm(a: Args) -> tuple[tuple[str, Scalar], ...]:
    told = ((key, getattr(a, f)) for f, key in _COMM_FIELDS.items())
    return tuple((key, value) for key, value in told if value is not None and value != _NO_SPLITS)


def _ids(values: list[Any], none: int = -1) -> Any:
    """A column of whole numbers; ``none`` where there is none."""
    kinds = set(map(type, values))
    if kinds == {NoneType}:
        return None
    if kinds <= {int, NoneType}:
        # One beyond int64 is none, and so each is looked at.
        with suppress(OverflowError):
            return np.array(
                [none if v is None else v for v in values] if NoneType in kinds else values, np.int64
            )
    return [_id(v, none) for v in values]


def _greatest(values: list[Any]) -> int:
    column = _ids(values)
    return -1 if column is None else int(np.max(column))


def _id(value: Scalar, none: int = -1) -> int:
    """A whole number, also a quoted one; ``none`` for anything else or beyond int64."""
    if value is None or value is True or value is False:
        return none
    try:
        n = int(value)
    except (ValueError, OverflowError):
        return none
    return n if -(1 << 63) <= n < 1 << 63 else none
