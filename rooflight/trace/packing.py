"""Columns as bytes: each in the narrowest integer type that holds it.

Starts, correlations and record ids are stored as differences to the row before, ends as lengths: they are
then small, equal numbers, which the compression that follows makes short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from rooflight.errors import Malformed
from rooflight.trace.tables import I64, Table

#: Little-endian types by their letter in the header, narrowest first.
TYPES: dict[str, np.dtype[Any]] = {
    "b": np.dtype("<i1"), "h": np.dtype("<i2"), "i": np.dtype("<i4"), "q": np.dtype("<i8"),
}  # fmt: skip
_DIFFERENCES = frozenset({"start", "correlation", "record"})
_LENGTHS = {"end": "start"}
Columns = dict[str, I64]
T = TypeVar("T", bound=Table)


def packed(table: Table) -> list[tuple[str, str, bytes]]:
    """(name, type letter, bytes) of every column."""
    columns: Columns = {f.name: getattr(table, f.name).astype(np.int64) for f in fields(table)}  # type: ignore[arg-type]
    return [(name, *_narrow(_differences(name, columns))) for name in columns]


def unpacked(name: str, stored: Columns) -> I64:
    """The column ``name`` of a table whose columns are ``stored`` as :func:`packed` made them."""
    if name in _LENGTHS:
        return unpacked(_LENGTHS[name], stored) + stored[name]
    return np.cumsum(stored[name], dtype=np.int64) if name in _DIFFERENCES else stored[name]


def table(kind: type[T], stored: Columns, types: Mapping[str, Any]) -> T:
    """A table of plain columns; ``types`` holds the column types that are not int64."""
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    missing = [n for n in names if n not in stored]
    if missing:
        raise Malformed(f"the stored timeline lacks the column {missing[0]}")
    found = {n: unpacked(n, stored) for n in names}
    return kind(*(_fitting(n, found[n], np.dtype(types.get(n, np.int64))) for n in names))


def _fitting(name: str, column: I64, dtype: np.dtype[Any]) -> Any:
    limits = np.iinfo(dtype)
    if column.size and not (limits.min <= column.min() and column.max() <= limits.max):
        raise Malformed(f"the stored timeline has a number out of range in its column {name}")
    return column.astype(dtype)


def _differences(name: str, columns: Columns) -> I64:
    column = columns[name]
    if name in _LENGTHS:
        return column - columns[_LENGTHS[name]]
    return np.diff(column, prepend=np.int64(0)) if name in _DIFFERENCES else column


def _narrow(column: I64) -> tuple[str, bytes]:
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    letter = next(k for k, t in TYPES.items() if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    return letter, column.astype(TYPES[letter]).tobytes()
