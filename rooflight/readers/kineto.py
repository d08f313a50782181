"""Kineto traces: what the torch profiler writes, from 2021 to 2026.

The shape of an event, as far as it is read (pytorch/kineto, libkineto/src/output_json.cpp):

    {"ph": "X", "cat": "kernel", "name": "...", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2.0, "args": {...}}

``ts`` and ``dur`` are decimal microseconds.  Values may be quoted numbers, keys may come in any order,
categories have had several spellings; what is not read is skipped without being looked at.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from rooflight.errors import NotATrace, TooLarge
from rooflight.readers import number
from rooflight.readers.events import EventStream
from rooflight.readers.meta import read_meta
from rooflight.readers.repair import repaired
from rooflight.readers.source import DEFAULT_LIMITS, Limits
from rooflight.trace.builder import Builder, GpuRows, HostRows
from rooflight.trace.tables import GpuKind, HostKind
from rooflight.trace.timeline import Timeline

Scalar = int | float | str | None
_NOTHING = Raw()


class Args(Struct, frozen=True, gc=False):
    """The args that are read; one struct for host and GPU rows."""

    device: Scalar = None
    context: Scalar = None
    stream: Scalar = None
    correlation: Scalar = None
    external_id: Scalar = field(name="External id", default=None)
    external_id_2021: Scalar = field(name="external id", default=None)
    graph_node: Scalar = field(name="graph node id", default=None)
    bytes: Scalar = None
    dims: Raw = field(name="Input Dims", default=_NOTHING)
    types: Raw = field(name="Input type", default=_NOTHING)
    strides: Raw = field(name="Input Strides", default=_NOTHING)
    concrete: Raw = field(name="Concrete Inputs", default=_NOTHING)
    sequence: Scalar = field(name="Sequence number", default=None)
    fwd_thread: Scalar = field(name="Fwd thread id", default=None)
    grid: Raw = _NOTHING
    block: Raw = _NOTHING
    registers: Scalar = field(name="registers per thread", default=None)
    shared_memory: Scalar = field(name="shared memory", default=None)
    collective: Scalar = field(name="Collective name", default=None)
    in_nelems: Scalar = field(name="In msg nelems", default=None)
    out_nelems: Scalar = field(name="Out msg nelems", default=None)
    group_size: Scalar = field(name="Group size", default=None)
    dtype: Scalar = None
    group_name: Scalar = field(name="Process Group Name", default=None)
    group_ranks: Scalar = field(name="Process Group Ranks", default=None)
    sequence_in_group: Scalar = field(name="Seq", default=None)
    device_type: Scalar = field(name="Device Type", default=None)
    allocated: Scalar = field(name="Total Allocated", default=None)
    reserved: Scalar = field(name="Total Reserved", default=None)
    kernel_backend: Scalar = None
    kernel_num_gb: Scalar = None
    kernel_flop: Scalar = None
    kernel_kwargs: Scalar = None
    labels: Scalar = None


_NO_ARGS = Args()


class Event(Struct, frozen=True, gc=False):
    """One row of ``traceEvents``."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar | UnsetType = UNSET
    args: Args = _NO_ARGS


_decoder = msgspec.json.Decoder(list[Event])

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
_NO_UTF8 = re.compile("[\udc80-\udcff]")
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

    def decode(self, data: bytes, *, last_resort: bool = False) -> None:
        """Take a JSON array of events; strict and fast first, lenient where the chunk surprises."""
        if last_resort:
            events, kinds = _mended(data)
            self._add(events)
            self.repaired += kinds
            return
        try:
            events = _decoder.decode(data)
        except msgspec.ValidationError:
            self._add(_lenient(data))
            return
        try:
            self._add(events)
        except number.NeedsText:
            self._add(_lenient(data))

    def _add(self, events: Sequence[Event]) -> None:
        gpu: list[tuple[Event, int]] = []
        host: list[tuple[Event, int]] = []
        classes = self._classes
        for e in events:
            if e.ph != "X":
                if e.name == "[memory]":
                    self._memory(e.args)
                continue
            kind = classes[e.cat]
            if kind is None:
                continue
            code, on_gpu = kind
            if not on_gpu:
                host.append((e, code))
            elif code == GpuKind.KERNEL or e.cat.lower().startswith("gpu_") or _placed(e.args):
                gpu.append((e, code))
        # Times first: they are what may ask for the text again, and nothing must be added twice.
        gpu_rows, host_rows = self._gpu_rows(gpu), self._host_rows(host)
        self.builder.add(gpu_rows, host_rows)
        self.events += len(events)
        if self.events > self._limits.max_events:
            raise TooLarge(
                f"too large: more than the limit of {self._limits.max_events} events",
                hint="record fewer steps, or raise the limit",
            )

    def _host_rows(self, rows: list[tuple[Event, int]]) -> HostRows:
        events = [e for e, _ in rows]
        start, dur, why = _times(events)
        kinds = [
            HostKind.ANNOTATION if code == HostKind.CPU_OP and _ANNOTATION.match(e.name) else code
            for e, code in rows
        ]
        b = self.builder
        args = [e.args for e in events]
        return HostRows(
            name=[b.names[e.name] for e in events],
            kind=kinds,
            start=start,
            dur=dur,
            invalid=why,
            thread=[b.threads[e.pid, e.tid] for e in events],
            correlation=_ids([a.correlation for a in args]),
            external_id=_ids(
                [a.external_id if a.external_id is not None else a.external_id_2021 for a in args]
            ),
            seq=_ids([a.sequence for a in args]),
            fwd_thread=_ids([a.fwd_thread for a in args]),
            args=[self._op_args(a) for a in args],
        )

    def _gpu_rows(self, rows: list[tuple[Event, int]]) -> GpuRows:
        events = [e for e, _ in rows]
        start, dur, why = _times(events)
        b = self.builder
        args = [e.args for e in events]
        devices = [e.pid if e.args.device is None else e.args.device for e in events]
        return GpuRows(
            name=[b.names[e.name] for e in events],
            kind=[code for _, code in rows],
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
        if a.dims is _NOTHING and a.types is _NOTHING and a.kernel_backend is None:
            return -1
        extra = b""
        if a.kernel_backend is not None:
            extra = msgspec.json.encode({f: getattr(a, f) for f in _EXTRA_FIELDS})
        return self.builder.op_args[bytes(a.dims), bytes(a.types), bytes(a.strides), bytes(a.concrete), extra]

    def _shape(self, a: Args) -> int:
        if a.grid is _NOTHING and a.registers is None:
            return -1
        return self.builder.shapes[bytes(a.grid), bytes(a.block), a.registers, a.shared_memory]

    def _memory(self, a: Args) -> None:
        # Device type 0 is the host; the rest (1 CUDA, 6 HIP, ...) is device memory.
        if a.device_type not in (None, 0, "0"):
            self.builder.note_memory(_id(a.allocated), _id(a.reserved))


class _Classes(dict[str, tuple[int, bool] | None]):
    """Category to (kind, whether it is GPU work); ``None`` for rows that are not kept."""

    def __missing__(self, cat: str) -> tuple[int, bool] | None:
        lower = cat.lower()
        if lower in _GPU:
            self[cat] = int(_GPU[lower]), True
        else:
            self[cat] = (int(_HOST[lower]), False) if lower in _HOST else None
        return self[cat]


def _placed(a: Args) -> bool:
    return a.stream is not None or a.device is not None


def _times(events: Sequence[Event]) -> tuple[Any, Any, Any]:
    """Start and duration in ns and why they are invalid; asks for text where binary would round."""
    starts: list[Any] = [e.ts for e in events]
    durs: list[Any] = [e.dur for e in events]
    if any(type(t) is Decimal for t in starts) or any(type(d) is Decimal for d in durs):
        return number.exact_columns(starts, durs, UNSET)
    try:
        start, dur = number.column(starts), number.column(durs)
    except number.NeedsText:
        if not any(type(v) is float for v in starts) and not any(type(v) is float for v in durs):
            # Integers and texts lose nothing on the way.
            return number.exact_columns(starts, durs, UNSET)
        raise
    return start, dur, None


def _comm(a: Args) -> tuple[tuple[str, Scalar], ...]:
    return tuple((key, value) for f, key in _COMM_FIELDS.items() if (value := getattr(a, f)) is not None)


def _ids(values: Sequence[Scalar], none: int = -1) -> list[int]:
    return [v if type(v) is int else _id(v, none) for v in values]


def _id(value: Scalar, none: int = -1) -> int:
    """A whole number, also a quoted one; ``none`` for anything else or beyond int64."""
    if value is None or isinstance(value, bool):
        return none
    try:
        n = int(value)
    except (ValueError, OverflowError):
        return none
    return n if -(1 << 63) <= n < 1 << 63 else none


# -- the lenient road ------------------------------------------------------------------------------


def _lenient(data: bytes) -> list[Event]:
    """Events of a chunk that has surprising types; times keep their digits, a field of an impossible
    type is absent."""
    text = data.decode("utf-8", "surrogateescape")
    return [_event(r) for r in _rows(text, text) if isinstance(r, dict)]


def _mended(data: bytes) -> tuple[list[Event], Counter[str]]:
    """Events of a chunk that is no strict JSON, where it leaves no doubt; and what was mended."""
    text = data.decode("utf-8", "surrogateescape")
    mended, kinds = repaired(text)
    events = [_event(r) for r in _rows(mended, text, strict=False) if isinstance(r, dict)]
    strange = len(_NO_UTF8.findall(text))
    if strange:
        kinds["bytes that are no UTF-8"] += strange
    return events, kinds


def _rows(text: str, original: str, *, strict: bool = True) -> list[Any]:
    try:
        rows: list[Any] = json.loads(
            text, strict=strict, parse_float=Decimal, parse_constant=_no_constant if strict else None
        )
    except json.JSONDecodeError as e:
        raise _placed_error(original, e) from e
    return rows


def _no_constant(word: str) -> Any:
    raise msgspec.DecodeError(f"JSON is malformed: {word} is no number")


def _placed_error(text: str, e: json.JSONDecodeError) -> msgspec.DecodeError:
    """The error as the strict decoder would put it: with the byte, and its words for text that follows."""
    at = len(text[: e.pos].encode("utf-8", "surrogateescape"))
    if e.msg == "Extra data":
        return msgspec.DecodeError(f"JSON is malformed: trailing characters (byte {at + 1})")
    if e.pos >= len(text):
        return msgspec.DecodeError("Input data was truncated")
    return msgspec.DecodeError(f"JSON is malformed: {e.msg.lower()} (byte {at})")


def _event(row: dict[str, Any]) -> Event:
    args = row.get("args")
    return Event(
        ph=_text(row.get("ph")),
        cat=_text(row.get("cat")),
        name=_text(row.get("name")),
        pid=_scalar(row.get("pid")),
        tid=_scalar(row.get("tid")),
        ts=_number(row.get("ts")),
        dur=_number(row["dur"]) if "dur" in row else UNSET,
        args=_args(args) if isinstance(args, dict) else _NO_ARGS,
    )


_ARG_FIELDS = [(f.name, f.encode_name, f.type is Raw) for f in msgspec.structs.fields(Args)]


def _args(row: dict[str, Any]) -> Args:
    known: dict[str, Any] = {}
    for name, key, raw in _ARG_FIELDS:
        if key in row:
            known[name] = _raw(row[key]) if raw else _scalar(row[key])
    return Args(**known)


def _raw(value: Any) -> Raw:
    return Raw(json.dumps(value, default=float).encode())


def _text(value: Any) -> str:
    """Text that UTF-8 can hold: bytes that were no UTF-8 and lone surrogates are escaped."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    if text.isascii():
        return text
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


def _scalar(value: Any) -> Scalar:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str):
        return _text(value)
    return value if isinstance(value, int | float) else None


def _number(value: Any) -> Any:
    # A Decimal passes through: it carries the digits to the exact conversion.
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
