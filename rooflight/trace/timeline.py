"""One process's recording."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np

from rooflight.protocol import Flag, MemoryPeaks
from rooflight.trace.children import children
from rooflight.trace.counters import NO_COUNTERS, CounterRows
from rooflight.trace.tables import GpuEvents, HostEvents, HostKind, Invalid


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """A device as the recording describes it; an unknown figure is ``None``."""

    id: str
    name: str
    memory_bytes: int | None = None
    compute: str | None = None
    sm_count: int | None = None
    limits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Meta:
    """What the recording says of itself.  ``rank`` is ``None`` when it does not say."""

    base_ns: int = 0
    rank: int | None = None
    world_size: int | None = None
    host: str | None = None
    devices: tuple[DeviceProperties, ...] = ()
    software: dict[str, str] = field(default_factory=dict)
    is_hip: bool = False

    def device(self, key: str) -> DeviceProperties | None:
        """The device that GPU events call ``key``.

        HIP numbers events by the physical device and properties by the visible one; where no number
        fits, the devices speak for it if they are all of one model.
        """
        by_id = {d.id: d for d in self.devices}
        models = {(d.name, d.memory_bytes, d.compute, d.sm_count) for d in self.devices}
        if key in by_id or len(models) != 1:
            return by_id.get(key)
        return self.devices[0]


#: One process never drives more.
MAX_DEVICES = 1024
#: ``OpArgs.source`` of what an execution trace told.
EXECUTION_TRACE = "execution trace"


@dataclass(frozen=True, slots=True)
class OpArgs:
    """The recorded inputs of an op, as the JSON texts of the four arg fields (empty: not recorded).

    An execution trace adds ``results``, a list of [dims, element type], and where it also completed the
    inputs ``source`` names it; the type of a list of tensors is then a list of their element types.
    """

    dims: bytes = b""
    types: bytes = b""
    strides: bytes = b""
    concrete: bytes = b""
    extra: bytes = b""
    results: bytes = b""
    source: str = ""

    @classmethod
    def of(cls, fields: bytes) -> Self:
        """From the JSON array of the fields; one that is null was not recorded.

        White space is that of the profiler, so that equal inputs are equal however they were written.
        """
        same = msgspec.json.format(fields, indent=0)
        texts = map(bytes, msgspec.json.decode(same, type=list[msgspec.Raw]))
        dims, types, strides, concrete, extra = (b"" if text == b"null" else text for text in texts)
        return cls(dims, types, strides, concrete, extra)

    def decoded(self) -> tuple[Any, ...]:
        """(dims, types, strides, concrete, extra) as Python values; what is broken or absent is empty."""
        return tuple(
            _value(text) for text in (self.dims, self.types, self.strides, self.concrete, self.extra)
        )

    def decoded_results(self) -> tuple[Any, ...]:
        """[dims, element type] of every tensor that came out; empty when that is not known."""
        found = _value(self.results)
        return tuple(found) if isinstance(found, list) else ()


_Size = Annotated[int, msgspec.Meta(ge=0)]
_Sizes = Annotated[tuple[_Size, ...], msgspec.Meta(max_length=3)]


class LaunchShape(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The launch geometry of a kernel; an absent figure is ``None``."""

    grid: _Sizes | None
    block: _Sizes | None
    registers: _Size | None
    shared_memory: _Size | None


@dataclass(frozen=True)
class Timeline:
    """A recording in columns, as :func:`rooflight.read` gives it; never changed.

    The columns of ``gpu`` and ``host`` are numpy arrays, one entry per event in the order of the file; times
    are whole ns on the recording's own clock (``meta.base_ns`` places it on the wall clock), sizes are bytes,
    and an index or id of -1 is none (:mod:`rooflight.trace.tables`).
    ``names`` is the string table that every ``name`` column indexes.  ``gpu`` holds every GPU event, also
    those without a usable interval (``gpu.invalid``), so that no event is lost silently.
    """

    source: str
    names: tuple[str, ...]
    gpu: GpuEvents
    host: HostEvents
    device_keys: tuple[str, ...]
    stream_keys: tuple[tuple[str, str, str, str], ...]
    threads: tuple[tuple[str, str], ...]
    op_args: tuple[OpArgs, ...]
    shapes: tuple[bytes, ...]
    comms: tuple[dict[str, Any], ...]
    meta: Meta = Meta()
    memory: MemoryPeaks | None = None
    flags: tuple[Flag, ...] = ()
    overlong_clipped: int = 0
    salvaged: bool = False
    counters: CounterRows = NO_COUNTERS

    def save(self, path: str | PathLike[str]) -> None:
        """Write it in Rooflight's own form, which :func:`rooflight.read` reads back without the raw trace.

        The name should end in ``.rooflight``.  Raises :class:`~rooflight.errors.Refused` when the file
        cannot be written; what was there before then stays.
        """
        from rooflight.trace import stored

        stored.save(self, Path(path))

    @cached_property
    def valid_gpu(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Rows of ``gpu`` with a usable interval."""
        return np.flatnonzero(self.gpu.invalid == Invalid.OK)

    def settled(self, rows: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """GPU events in the order of their start, those that start together by what they are: where one of
        several counts, the order in the file has no say."""
        gpu = self.gpu
        rows = rows[np.argsort(gpu.start[rows], kind="stable")]
        again = gpu.start[rows[1:]] == gpu.start[rows[:-1]]
        at = np.flatnonzero(np.append(again, False) | np.append(False, again))
        if at.size:
            tied = rows[at]
            names = sorted({self.names[i] for i in gpu.name[tied].tolist()})
            place = {name: i for i, name in enumerate(names)}
            name = np.array([place[self.names[i]] for i in gpu.name[tied].tolist()], np.int64)
            what = (gpu.graph_node[tied], gpu.correlation[tied], gpu.end[tied], gpu.kind[tied], name)
            rows[at] = tied[np.lexsort((*what, gpu.start[tied]))]
        return rows

    @cached_property
    def inputs(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """A number for each row of ``op_args``, equal where dims and types are: white space does not count.
        One more at the end, of its own, stands for no args."""
        table: dict[tuple[bytes, bytes], int] = {}
        keys = ((b"".join(a.dims.split()), b"".join(a.types.split())) for a in self.op_args)
        return np.array([*(table.setdefault(key, len(table)) for key in keys), -1], np.int64)

    @cached_property
    def invalid_events(self) -> dict[str, int]:
        """GPU events without a usable interval, counted by reason."""
        codes, counts = np.unique(self.gpu.invalid[self.gpu.invalid != Invalid.OK], return_counts=True)
        return {Invalid(c).name.lower(): int(n) for c, n in zip(codes, counts, strict=True)}

    def shape(self, row: int) -> LaunchShape | None:
        """The launch geometry of a GPU event, ``None`` when none was recorded."""
        index = int(self.gpu.shape[row])
        return None if index < 0 else self.launch_shape(index)

    def launch_shape(self, index: int) -> LaunchShape:
        """The launch geometry at this place of :attr:`shapes`."""
        text = b"[" + self.shapes[index] + b"]"
        with suppress(msgspec.DecodeError, RecursionError):
            return _SHAPE.decode(text)
        values = _value(text)
        grid, block, registers, shared = values if len(values) == 4 else (None,) * 4
        return LaunchShape(_triple(grid), _triple(block), _count(registers), _count(shared))

    def name_ids(self, *names: str) -> list[int]:
        """Indices of exact names in the string table; those that do not occur are left out."""
        wanted = set(names)
        return [i for i, n in enumerate(self.names) if n in wanted]

    @cached_property
    def frame_names(self) -> list[str]:
        """Names of the Python frames, each once, in order of first appearance."""
        rows = self.host.name[self.host.kind == HostKind.PYTHON]
        _, first = np.unique(rows, return_index=True)
        return [self.names[rows[i]] for i in sorted(first)]

    @cached_property
    def op_children(self) -> dict[str, list[str]]:
        """Names of the ops directly inside the ops of each name, each once, in order of appearance."""
        names = self.names
        found: dict[str, dict[str, None]] = {}
        for parent, child in children(self.host):
            found.setdefault(names[self.host.name[parent]], {})[names[self.host.name[child]]] = None
        return {name: list(inside) for name, inside in found.items()}


#: A launch geometry as the profiler writes it; any other is looked at value by value.
_SHAPE = msgspec.json.Decoder(LaunchShape)


def _triple(values: Any) -> tuple[int, ...] | None:
    if isinstance(values, list) and len(values) <= 3 and all(_count(v) is not None for v in values):
        return tuple(values)
    return None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _value(text: bytes) -> Any:
    if not text:
        return ()
    with suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(text)
    # What is no strict JSON (NaN) may still be what Python writes.
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return ()
