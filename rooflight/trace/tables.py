"""The columns of a recording.

Every column of a table has the same length.  Times are integer nanoseconds on the recording's own
clock; ``timeline.meta.base_ns`` places it on the wall clock.  Sentinels: -1 is "none" in every id and
index column, and in ``bytes``; 0 is "none" in ``graph_node``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
I8 = NDArray[np.int8]
Mask = NDArray[np.bool_]
#: What a whole number of a column holds.
_BITS = 62
T = TypeVar("T", bound=np.integer[Any])


class GpuKind(IntEnum):
    """What the device did."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2


class HostKind(IntEnum):
    """What a host row is."""

    CPU_OP = 0
    ANNOTATION = 1
    RUNTIME = 2
    DRIVER = 3
    PYTHON = 4


class Invalid(IntEnum):
    """Why a GPU event has no usable interval (DEFINITIONS §3)."""

    OK = 0
    MISSING_DUR = 1
    BAD_TS = 2
    ZERO_TS = 3
    BAD_DUR = 4
    NEGATIVE_DUR = 5


class Table:
    """Row-aligned columns; a selection is a new table."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    def take(self, rows: I64 | Mask) -> Self:
        """The rows at ``rows`` (indices or a mask), in that order."""
        return type(self)(*(getattr(self, f.name)[rows] for f in fields(self)))  # type: ignore[arg-type]


def rows_by(keys: NDArray[np.integer[Any]]) -> Iterator[tuple[int, I64]]:
    """Each distinct key with the positions at which it stands, in one sort whatever their number."""
    order = in_order(keys)
    found, first = _runs(keys[order])
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=True) if found.size else ()


def in_order(keys: NDArray[np.integer[Any]]) -> I64:
    """The places of the keys in order, equal ones as they stand."""
    if not _have_room(keys, keys.size - 1):
        return np.argsort(keys, kind="stable")
    return _sorted_below(keys, np.arange(keys.size))


def in_order_of(keys: NDArray[np.integer[Any]], then: I64) -> I64:
    """The places of the keys in order, equal ones by ``then``, which is nearly sorted."""
    order = np.argsort(then, kind="stable")
    return order[in_order(keys[order])]


def sorted_within(keys: NDArray[np.integer[Any]], values: I64) -> I64:
    """The values in the order of their keys, those of one key from the least to the greatest."""
    least = int(values.min()) if values.size else 0
    if not _have_room(keys, int(values.max(initial=least)) - least):
        return values[np.lexsort((values, keys))]
    return _sorted_below(keys, values - least) + least


def numbered(keys: NDArray[np.integer[Any]]) -> tuple[I64, I64]:
    """Where each distinct key, in order, stands first; and for each row the number of its key."""
    if not _have_room(keys, keys.size - 1):
        keys = np.unique(keys, return_inverse=True)[1]
    order = in_order(keys)
    _, first = _runs(keys[order])
    number = np.empty(keys.size, np.int64)
    number[order] = np.repeat(np.arange(first.size), np.diff(np.append(first, keys.size)))
    return order[first], number


def _runs(ordered: NDArray[T]) -> tuple[NDArray[T], I64]:
    """The distinct values of a sorted column, and where each begins."""
    first = np.flatnonzero(np.append(np.ones(min(1, ordered.size), bool), ordered[1:] != ordered[:-1]))
    return ordered[first], first


def _have_room(keys: NDArray[np.integer[Any]], most: int) -> bool:
    """Whether a key and a number of up to ``most`` are one whole number of 64 bits together."""
    return keys.size == 0 or (int(keys.max()) - int(keys.min())).bit_length() + most.bit_length() <= _BITS


def _sorted_below(keys: NDArray[np.integer[Any]], low: I64) -> I64:
    """The numbers ``low``, at least 0, in the order of their keys and then of their own."""
    if keys.size == 0:
        return low
    bits = int(low.max()).bit_length()
    # Numbers are sorted several times as fast as places of numbers.
    packed = ((keys.astype(np.int64) - int(keys.min())) << bits) | low
    packed.sort()
    found: I64 = packed & ((1 << bits) - 1)
    return found


def distinct(values: NDArray[T]) -> NDArray[T]:
    """Each value once, sorted.  ``np.unique`` alone is slower, and imports masked arrays."""
    ordered = np.sort(values)
    first: Mask = np.append(np.ones(min(1, ordered.size), bool), ordered[1:] != ordered[:-1])
    return ordered[first]


def among(values: NDArray[np.integer[Any]], table: NDArray[np.integer[Any]]) -> Mask:
    """Which values are in the table; as ``np.isin``, for tables of any range and size."""
    ordered = np.sort(table)
    if ordered.size == 0:
        return np.zeros(values.shape, bool)
    at = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    found: Mask = ordered[at] == values
    return found


def combined(*columns: NDArray[np.integer[Any]]) -> I64:
    """One number per row, equal where all columns are; their values are at least -1."""
    key = columns[0].astype(np.int64)
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 2
        if int(key.max(initial=0)) >= (1 << 62) // width:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
        key = key * width + (column + 1)
    return key


def values_at(column: NDArray[np.integer[Any]], rows: I64, none: int) -> I64:
    """``column[rows]`` in int64, ``none`` where a row is -1."""
    known = rows >= 0
    values = np.full(rows.size, none, np.int64)
    values[known] = column[rows[known]]
    return values


@dataclass(frozen=True, slots=True)
class GpuEvents(Table):
    """Kernels, memcpys and memsets.

    ``end`` is clipped where a serial stream says so (DEFINITIONS §3), ``dur`` is as recorded.
    ``device`` and ``stream`` index ``timeline.device_keys`` and ``timeline.stream_keys``; ``shape``,
    ``comm`` index the launch geometries and the collectives' args.
    """

    name: I32
    kind: I8
    start: I64
    end: I64
    dur: I64
    device: I32
    stream: I32
    correlation: I64
    graph_node: I64
    bytes: I64
    shape: I32
    comm: I32
    invalid: I8


@dataclass(frozen=True, slots=True)
class HostEvents(Table):
    """Ops, annotations, API calls and Python frames.

    ``thread`` indexes ``timeline.threads``; ``args`` the recorded inputs of ops; ``seq`` is the
    sequence number of autograd and ``fwd_thread`` is above 0 on backward ops.  ``record`` is the number by
    which an execution trace knows the op, 0 for none.
    """

    name: I32
    kind: I8
    start: I64
    end: I64
    thread: I32
    correlation: I64
    seq: I64
    fwd_thread: I64
    args: I32
    record: I64
