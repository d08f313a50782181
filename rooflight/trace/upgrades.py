"""What older stored timelines lack, version by version.

The number goes up with every change of :class:`rooflight.trace.stored.Header` or of the tables; the change
is a line in docs/stored.md and a function here, which takes a document of its version to the next.  A file
of each version that was ever released is kept in ``tests/data/``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rooflight.trace.packing import Columns

#: The version that is written.
VERSION = 1

Document = tuple[dict[str, Any], dict[str, Columns]]
#: From a version to the next: header (decoded JSON) and the stored columns of each table.
UPGRADES: dict[int, Callable[[dict[str, Any], dict[str, Columns]], Document]] = {}


def upgraded(version: int, header: dict[str, Any], columns: dict[str, Columns]) -> Document:
    """A document of ``version`` as one of :data:`VERSION`."""
    for step in range(version, VERSION):
        header, columns = UPGRADES[step](header, columns)
    return header, columns
