"""Kineto traces: what the torch profiler writes, from 2021 to 2026.

The shape of an event, as far as it is read (pytorch/kineto, libkineto/src/output_json.cpp):

    {"ph": "X", "cat": "kernel", "name": "...", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2.0, "args": {...}}

``ts`` and ``dur`` are decimal microseconds.  Values may be quoted numbers, keys may come in any order,
categories have had several spellings; what is not read is skipped without being looked at.
"""

from __future__ import annotations

import re
from collections import Counter
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
from rooflight.readers.kineto_rows import (
    NOTHING,
    Args,
    Event,
    Instant,
    MemoryArgs,
    Row,
    Scalar,
    lenient,
    mended,
    strict,
    with_texts,
)
from rooflight.readers.meta import read_meta
from rooflight.readers.source import DEFAULT_LIMITS, Limits
from rooflight.trace.builder import Builder, GpuRows, HostRows
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
#: Rows that 2021's profiler filed under its operators, though they are annotations.
_ANNOTATION = re.compile(r"ProfilerStep#\d+$|enumerate\(DataLoader\)#|Optimizer\.step#|Optimizer\.zero_grad#")
_COMM_FIELDS = {
    "collective": "Collective name",
    "in_nelems": "In msg nelems",
    "out_nelems": "Out msg nelems",
    "group_size": "Group size",
    "dtype": "dtype",
    "group_name": "Process Group Name",
    "group_ranks": "Process Group Ranks",
    "sequence_in_group": "Seq",
}
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
    if reader.repaired:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(reader.repaired.items()))
        builder.flag("json_repaired", reader.repaired.total(), f"the JSON was mended: {kinds}")
    if stream.cut_off is not None:
        builder.flag("truncated", reader.events, f"salvaged: {stream.cut_off}; {reader.events} events kept")
    return builder.timeline(read_meta(stream.meta), salvaged=stream.cut_off is not None)


class _Reader:
    """Decodes chunks of events into the builder's columns."""

    def __init__(self, builder: Builder, limits: Limits) -> None:
        self.builder = builder
        self.events = 0
        self.repaired: Counter[str] = Counter()
        self._limits = limits
        self._classes = _Classes()
        self._is_annotation = _Annotations()

    def decode(self, data: memoryview, *, last_resort: bool = False) -> None:
        """Take a JSON array of events; strict and fast first, lenient where the chunk surprises."""
        if last_resort:
            events, kinds = mended(data)
            self._add(events)
            self.repaired += kinds
            return
        try:
            events = strict(data)
        except msgspec.ValidationError:
            self._add(lenient(data))
            return
        try:
            self._add(events)
        except number.NeedsText:
            self._add(with_texts(data))

    def _add(self, rows: Sequence[Row]) -> None:
        events = [e for e in rows if isinstance(e, Event)]
        kinds = [self._classes[e.cat] for e in events]
        host = [e for e, kind in zip(events, kinds, strict=True) if 0 <= kind < _FIRST_GPU]
        gpu = [e for e, kind in zip(events, kinds, strict=True) if kind >= _FIRST_GPU and _on_gpu(e)]
        # Times first: they are what may ask for the text again, and nothing must be added twice.
        gpu_rows = self._gpu_rows(gpu)
        host_rows = self._host_rows(host, [kind for kind in kinds if 0 <= kind < _FIRST_GPU])
        self.builder.add(gpu_rows, host_rows)
        self._memory([e.args for e in rows if type(e) is Instant and e.name == "[memory]"])
        self.events += len(rows)
        if self.events > self._limits.max_events:
            raise TooLarge(
                f"too large: more than the limit of {self._limits.max_events} events",
                hint="record fewer steps, or raise the limit",
            )

    def _host_rows(self, events: list[Event], kinds: list[int]) -> HostRows:
        start, dur, why = _times(events)
        b = self.builder
        args = [e.args for e in events]
        names = [b.names[e.name] for e in events]
        if HostKind.CPU_OP in kinds:
            kinds = [
                HostKind.ANNOTATION if kind == HostKind.CPU_OP and self._is_annotation[e.name] else kind
                for e, kind in zip(events, kinds, strict=True)
            ]
        return HostRows(
            name=names,
            kind=kinds,
            start=start,
            dur=dur,
            invalid=why,
            thread=[b.threads[e.pid, e.tid] for e in events],
            correlation=_ids([a.correlation for a in args]),
            seq=_ids([a.sequence for a in args]),
            fwd_thread=_ids([a.fwd_thread for a in args]),
            args=[
                -1
                if a.dims is NOTHING and a.types is NOTHING and a.kernel_backend is None
                else self._op_args(a)
                for a in args
            ],
        )

    def _gpu_rows(self, events: list[Event]) -> GpuRows:
        start, dur, why = _times(events)
        b = self.builder
        args = [e.args for e in events]
        devices = [e.pid if e.args.device is None else e.args.device for e in events]
        return GpuRows(
            name=[b.names[e.name] for e in events],
            kind=[self._classes[e.cat] - _FIRST_GPU for e in events],
            start=start,
            dur=dur,
            invalid=why,
            device=[b.devices[d] for d in devices],
            stream=[
                b.streams[e.pid, d, e.args.context, e.tid if e.args.stream is None else e.args.stream]
                for e, d in zip(events, devices, strict=True)
            ],
            correlation=_ids([a.correlation for a in args]),
            graph_node=_ids([a.graph_node for a in args], none=0),
            bytes=_ids([a.bytes for a in args]),
            shape=[self._shape(a) for a in args],
            comm=[-1 if a.collective is None else b.comms[_comm(a)] for a in args],
        )

    def _op_args(self, a: Args) -> int:
        extra = b""
        if a.kernel_backend is not None:
            extra = msgspec.json.encode({f: getattr(a, f) for f in _EXTRA_FIELDS})
        return self.builder.op_args[bytes(a.dims), bytes(a.types), bytes(a.strides), bytes(a.concrete), extra]

    def _shape(self, a: Args) -> int:
        if a.grid is NOTHING and a.registers is None:
            return -1
        return self.builder.shapes[bytes(a.grid), bytes(a.block), a.registers, a.shared_memory]

    def _memory(self, rows: list[MemoryArgs]) -> None:
        # Device type 0 is the host; the rest (1 CUDA, 6 HIP, ...) is device memory.
        on_device = [a for a in rows if a.device_type not in (None, 0, "0")]
        if on_device:
            allocated, reserved = (
                _ids([getattr(a, f) for a in on_device]) for f in ("allocated", "reserved")
            )
            self.builder.note_memory(int(max(allocated)), int(max(reserved)))


class _Annotations(dict[str, bool]):
    """Whether a name is one that 2021's profiler filed under its operators, though it is no op."""

    def __missing__(self, name: str) -> bool:
        self[name] = found = bool(_ANNOTATION.match(name))
        return found


class _Classes(dict[str, int]):
    """Category to kind: that of a host row, ``_FIRST_GPU`` plus that of a GPU event, -1 for others."""

    def __missing__(self, cat: str) -> int:
        lower = cat.lower()
        if lower in _GPU:
            self[cat] = _FIRST_GPU + _GPU[lower]
        else:
            self[cat] = int(_HOST.get(lower, -1))
        return self[cat]


def _on_gpu(e: Event) -> bool:
    """Old names of copies were the host's too: only those on a device or stream are GPU work."""
    return e.cat.lower() not in ("memcpy", "memset") or _placed(e.args)


def _placed(a: Args) -> bool:
    return a.stream is not None or a.device is not None


def _times(events: Sequence[Event]) -> tuple[Any, Any, Any]:
    """Start and duration in ns and why they are invalid; asks for text where binary would round."""
    starts: list[Any] = [e.ts for e in events]
    durs: list[Any] = [e.dur for e in events]
    kinds = set(map(type, starts)) | set(map(type, durs))
    if Decimal in kinds:
        return number.exact_columns(starts, durs, UNSET)
    if Raw in kinds:
        return number.text_columns(starts, durs, UNSET)
    try:
        start, dur = number.column(starts), number.column(durs)
    except number.NeedsText:
        if float not in kinds:
            # Integers and texts lose nothing on the way.
            return number.exact_columns(starts, durs, UNSET)
        raise
    return start, dur, None


def _comm(a: Args) -> tuple[tuple[str, Scalar], ...]:
    return tuple((key, value) for f, key in _COMM_FIELDS.items() if (value := getattr(a, f)) is not None)


def _ids(values: list[Any], none: int = -1) -> Any:
    """A column of whole numbers; ``none`` where there is none."""
    kinds = set(map(type, values))
    if kinds == {NoneType}:
        return np.full(len(values), none, np.int64)
    if kinds <= {int, NoneType}:
        # One beyond int64 is none, and so each is looked at.
        with suppress(OverflowError):
            return np.array([none if v is None else v for v in values], np.int64)
    return [_id(v, none) for v in values]


def _id(value: Scalar, none: int = -1) -> int:
    """A whole number, also a quoted one; ``none`` for anything else or beyond int64."""
    if value is None or value is True or value is False:
        return none
    try:
        n = int(value)
    except (ValueError, OverflowError):
        return none
    return n if -(1 << 63) <= n < 1 << 63 else none
