"""Rows in, a Timeline out: interning, invalid events, clipping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from rooflight.errors import TooLarge
from rooflight.protocol import Flag, MemoryPeaks
from rooflight.trace.counters import MAX_LAUNCHES, CounterRow, CounterRows
from rooflight.trace.tables import I8, I32, I64, GpuEvents, GpuKind, HostEvents, HostKind, Invalid
from rooflight.trace.texts import Texts
from rooflight.trace.timeline import MAX_DEVICES, Meta, OpArgs, Timeline
from rooflight.trace.times import MAX_NS, check_total

K = TypeVar("K")
Values = dict[str, int]
#: A time beyond this is an epoch clock's: 1e9 µs, in ns.
_EPOCH_NS = 10**12
_CLIP_COUNTED_NS = 1000


class Interner(dict[K, int]):
    """Keys to consecutive numbers, in order of first appearance."""

    def __missing__(self, key: K) -> int:
        n = self[key] = len(self)
        return n


@dataclass(frozen=True, slots=True)
class Times:
    """Start and duration in ns, and why a row is invalid; ``None`` when all are fine."""

    start: I64
    dur: I64
    invalid: I8 | None = None

    def part(self, begin: int, end: int) -> Times:
        """The rows from ``begin`` to ``end``."""
        cut = slice(begin, end)
        return Times(self.start[cut], self.dur[cut], None if self.invalid is None else self.invalid[cut])


Column = Sequence[int] | I64 | I32 | None


@dataclass(slots=True)
class GpuRows:
    """A chunk of GPU events of one kind; a column that is ``None`` has none in every row."""

    name: Sequence[int]
    kind: int
    times: Times
    device: Sequence[int]
    stream: Sequence[int]
    correlation: Column
    graph_node: Column
    bytes: Column
    shape: Column
    comm: Sequence[int]


@dataclass(slots=True)
class HostRows:
    """A chunk of host events of one kind, as :class:`GpuRows`."""

    name: Sequence[int]
    kind: int
    times: Times
    thread: Sequence[int]
    correlation: Column = None
    seq: Column = None
    fwd_thread: Column = None
    args: Column = None
    record: Column = None


_SMALL = {"name": np.int32, "thread": np.int32, "device": np.int32, "stream": np.int32, "shape": np.int32}
_DTYPES: dict[str, type[np.signedinteger[Any]]] = {
    **_SMALL, "comm": np.int32, "args": np.int32, "kind": np.int8, "invalid": np.int8,
}  # fmt: skip
#: What stands for "none" where it is not -1.
_NONE = {"graph_node": 0, "record": 0}


class Builder:
    """Collects chunks of rows.  The interners map raw keys; equal texts and numbers meet at the end."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.names: Interner[str] = Interner()
        self.threads: Interner[Any] = Interner()
        self.devices: Interner[Any] = Interner()
        self.streams: Interner[Any] = Interner()
        #: JSON arrays without their brackets: the fields of OpArgs; grid, block, registers, shared memory.
        self.op_args = Texts()
        self.shapes = Texts()
        self.comms: Interner[tuple[tuple[str, Any], ...]] = Interner()
        self._metrics: Interner[tuple[str, ...]] = Interner()
        self._counted: list[tuple[float, CounterRow]] = []
        self._uncounted = 0
        self._gpu: list[dict[str, Any]] = []
        self._host: list[dict[str, Any]] = []
        self._allocated = -1
        self._reserved = -1
        self._flags: list[Flag] = []

    def add_gpu(self, rows: GpuRows) -> None:
        """Take a chunk; columns become arrays at once, so that no object of the reader is kept."""
        self._gpu.append(_columns(rows))

    def add_host(self, rows: HostRows) -> None:
        """As :meth:`add_gpu`."""
        self._host.append(_columns(rows))

    def note_memory(self, allocated: int, reserved: int) -> None:
        """A ``[memory]`` row of a device: totals in bytes, -1 when it has none."""
        self._allocated = max(self._allocated, allocated)
        self._reserved = max(self._reserved, reserved)

    def add_counters(self, name: str, device: str, start: float, correlation: int, values: Values) -> None:
        """What the counters of a launch counted; only the order of the starts tells anything."""
        if len(self._counted) == MAX_LAUNCHES:
            self._uncounted += 1
            return
        metrics = self._metrics[tuple(sorted(values))]
        counts = tuple(values[metric] for metric in sorted(values))
        self._counted.append((start, CounterRow(self.names[name], device, correlation, metrics, counts)))

    def flag(self, code: str, count: int | None, detail: str) -> None:
        """A statement on the quality of the data."""
        self._flags.append(Flag(code, count, detail))

    def timeline(
        self, meta: Meta, *, salvaged: bool = False, is_annotation: Callable[[str], object] | None = None
    ) -> Timeline:
        """The finished recording; ops whose name ``is_annotation`` become annotations."""
        gpu, host = _joined(self._gpu, GpuRows), _joined(self._host, HostRows)
        self._mark_zero(gpu, host)
        for rows in (gpu, host):
            _mark_endless(rows)
        check_total(self.source, gpu["dur"], host["dur"])
        if is_annotation is not None:
            marks = np.array([bool(is_annotation(n)) for n in self.names] or [False])
            host["kind"][(host["kind"] == HostKind.CPU_OP) & marks[host["name"]]] = HostKind.ANNOTATION
        names, by_name = _sorted(self.names, str)
        gpu["name"], host["name"] = by_name[gpu["name"]], by_name[host["name"]]
        shapes, by_shape = self.shapes.table()
        comms, by_comm = _sorted(self.comms, repr)
        gpu["shape"], gpu["comm"] = by_shape[gpu["shape"]], by_comm[gpu["comm"]]
        device_keys, devices = _canonical(self.devices, str)
        if len(device_keys) > MAX_DEVICES:
            raise TooLarge(f"too large: GPU events of more than {MAX_DEVICES} devices", where=self.source)
        stream_keys, streams = _canonical(self.streams, lambda k: tuple(map(str, k)))
        threads, thread = _canonical(self.threads, lambda k: tuple(map(str, k)))
        op_args, args = self.op_args.table()
        end, clipped = _clip(gpu, streams)
        return Timeline(
            source=self.source,
            names=names,
            gpu=GpuEvents(
                name=gpu["name"], kind=gpu["kind"], start=gpu["start"], end=end, dur=gpu["dur"],
                device=devices[gpu["device"]], stream=streams[gpu["stream"]], correlation=gpu["correlation"],
                graph_node=gpu["graph_node"], bytes=gpu["bytes"], shape=gpu["shape"], comm=gpu["comm"],
                invalid=gpu["invalid"],
            ),
            host=self._host_events(host, thread, args),
            device_keys=device_keys,
            stream_keys=stream_keys,
            threads=threads,
            op_args=tuple(OpArgs.of(b"[" + key + b"]") for key in op_args),
            shapes=shapes,
            comms=tuple(map(dict, comms)),
            meta=meta,
            memory=self._memory(),
            flags=tuple(self._flags),
            overlong_clipped=clipped,
            salvaged=salvaged,
            counters=self._counters(by_name),
        )  # fmt: skip

    def _counters(self, by_name: I32) -> CounterRows:
        self._counted.sort(key=lambda found: (found[1].device, found[0]))
        rows = tuple(replace(row, name=int(by_name[row.name])) for _, row in self._counted)
        return CounterRows(tuple(self._metrics), rows, self._uncounted)

    def _memory(self) -> MemoryPeaks | None:
        if self._allocated < 0 and self._reserved < 0:
            return None
        known = [None if n < 0 else n for n in (self._allocated, self._reserved)]
        return MemoryPeaks(*known)

    @staticmethod
    def _host_events(rows: dict[str, Any], thread: Any, args: Any) -> HostEvents:
        # A host row without an interval can enclose nothing and waits for nothing.
        ok = (rows["invalid"] == Invalid.OK) & (rows["dur"] >= 0)
        keep = {name: column[ok] for name, column in rows.items()}
        return HostEvents(
            name=keep["name"], kind=keep["kind"], start=keep["start"], end=keep["start"] + keep["dur"],
            thread=thread[keep["thread"]], correlation=keep["correlation"],
            seq=keep["seq"], fwd_thread=keep["fwd_thread"], args=args[keep["args"]],
            record=keep["record"],
        )  # fmt: skip

    @staticmethod
    def _mark_zero(gpu: dict[str, Any], host: dict[str, Any]) -> None:
        """A time of exactly 0 beside an epoch clock is a lost time stamp."""
        starts = np.concatenate((gpu["start"], host["start"]))
        epoch = np.count_nonzero(starts > _EPOCH_NS) * 2 > starts.size
        for rows in (gpu, host):
            known = (rows["invalid"] == Invalid.OK) | (rows["invalid"] == Invalid.BAD_DUR)
            if epoch:
                rows["invalid"][known & (rows["start"] == 0)] = Invalid.ZERO_TS
        fine = gpu["invalid"] == Invalid.OK
        gpu["invalid"][fine & (gpu["dur"] < 0)] = Invalid.NEGATIVE_DUR


def _mark_endless(rows: dict[str, Any]) -> None:
    """An end that is no time makes the duration none."""
    endless = rows["start"] + rows["dur"] > MAX_NS
    rows["invalid"][endless & (rows["invalid"] == Invalid.OK)] = Invalid.BAD_DUR
    rows["dur"][endless] = 0


def _columns(rows: GpuRows | HostRows) -> dict[str, Any]:
    times = rows.times
    n = times.start.size
    invalid = np.zeros(n, np.int8) if times.invalid is None else times.invalid
    columns: dict[str, Any] = {"start": times.start, "dur": times.dur, "invalid": invalid}
    for f in fields(rows):
        if f.name != "times":
            columns[f.name] = _column(f.name, getattr(rows, f.name), n)
    return columns


def _column(name: str, values: Any, n: int) -> Any:
    dtype = _DTYPES.get(name, np.int64)
    if values is None or isinstance(values, int):
        return np.full(n, _NONE.get(name, -1) if values is None else values, dtype)
    return np.array(values, dtype)


def _joined(chunks: list[dict[str, Any]], shape: type[Any]) -> dict[str, Any]:
    names = [*(f.name for f in fields(shape) if f.name != "times"), "start", "dur", "invalid"]
    if not chunks:
        return {name: np.empty(0, _DTYPES.get(name, np.int64)) for name in names}
    return {name: np.concatenate([c[name] for c in chunks]) for name in names}


def _canonical(raw: Interner[Any], form: Callable[[Any], Any]) -> tuple[tuple[Any, ...], Any]:
    """Distinct canonical keys in their natural order, and the place of each raw key among them (7 and "7"
    are one): numbers of devices and threads do not depend on who came first in the file."""
    forms = [form(key) for key in raw]
    keys = sorted(set(forms), key=_natural)
    table = {key: i for i, key in enumerate(keys)}
    return tuple(keys), np.array([table[f] for f in forms], np.int32)


def _natural(key: str | tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    # Shorter digits are smaller numbers.
    return tuple((len(part), part) for part in ([key] if isinstance(key, str) else key))


def _sorted(table: Interner[K], form: Callable[[K], Any]) -> tuple[tuple[K, ...], I32]:
    """The entries in order of their ``form``, and where each has gone; the last, for no entry, is -1."""
    entries = list(table)
    order = sorted(range(len(entries)), key=[form(e) for e in entries].__getitem__)
    places = np.full(len(entries) + 1, -1, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return tuple(entries[i] for i in order), places


def _clip(gpu: dict[str, Any], streams: Any) -> tuple[I64, int]:
    """Ends on serial streams: a kernel that ends after the next event of its stream starts is cut
    there, unless it belongs to a graph (DEFINITIONS §3).  Also how many cuts passed 1 µs."""
    end: I64 = gpu["start"] + np.maximum(gpu["dur"], 0)
    rows = np.flatnonzero(gpu["invalid"] == Invalid.OK)
    # Rows that are equal in time go by what they are, so that the order in the file changes nothing.
    what = ("shape", "bytes", "comm", "graph_node", "name", "correlation", "kind")
    ties = tuple(gpu[column][rows] for column in what)
    order = rows[np.lexsort((*ties, end[rows], gpu["start"][rows], streams[gpu["stream"][rows]]))]
    this, following = order[:-1], order[1:]
    over = end[this] - gpu["start"][following]
    cut = (
        (streams[gpu["stream"][this]] == streams[gpu["stream"][following]])
        & (gpu["kind"][this] == GpuKind.KERNEL)
        & (gpu["graph_node"][this] == 0)
        & (over > 0)
    )
    end[this[cut]] = gpu["start"][following[cut]]
    return end, int(np.count_nonzero(over[cut] > _CLIP_COUNTED_NS))
