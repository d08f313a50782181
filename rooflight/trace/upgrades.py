"""What older stored timelines lack, version by version.

The number goes up with every change of :class:`rooflight.trace.stored.Header` or of the tables; the change
is a line in docs/stored.md and a function here, which takes a document of its version to the next.  A file
of each version that was ever released is kept in ``tests/data/``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from rooflight.trace.packing import Columns

#: The version that is written.
VERSION = 3

Document = tuple[dict[str, Any], dict[str, Columns]]


def _with_execution_traces(header: dict[str, Any], columns: dict[str, Columns]) -> Document:
    """No op had a record id, and none had results or a source of its inputs; a launch geometry was two texts
    and two numbers, and is one text now."""
    rows = len(next(iter(columns["host"].values()), ()))
    host = columns["host"] | {"record": np.zeros(rows, np.int64)}
    op_args = [[*row, "", ""] for row in _lists(header.get("op_args"))]
    shapes = [_geometry(*row) for row in _lists(header.get("shapes")) if len(row) == 4]
    return header | {"op_args": op_args, "shapes": shapes}, columns | {"host": host}


def _lists(table: object) -> list[list[Any]]:
    return [row for row in table if isinstance(row, list)] if isinstance(table, list) else []


def _geometry(grid: object, block: object, registers: object, shared: object) -> str:
    texts = (grid or "null", block or "null", json.dumps(registers), json.dumps(shared))
    return ",".join(map(str, texts))


def _with_counters(header: dict[str, Any], columns: dict[str, Columns]) -> Document:
    """Counters of launches were not kept."""
    return header | {"counters": {}}, columns


#: From a version to the next: header (decoded JSON) and the stored columns of each table.
UPGRADES: dict[int, Callable[[dict[str, Any], dict[str, Columns]], Document]] = {
    1: _with_execution_traces,
    2: _with_counters,
}


def upgraded(version: int, header: dict[str, Any], columns: dict[str, Columns]) -> Document:
    """A document of ``version`` as one of :data:`VERSION`."""
    for step in range(version, VERSION):
        header, columns = UPGRADES[step](header, columns)
    return header, columns
