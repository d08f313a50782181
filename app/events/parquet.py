"""Launches in the event store: one immutable Parquet file per profile, by project and day.

DuckDB writes and reads them in memory (numpy columns go in as they are); there is no shared database file
that a second process could not open.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from app.text import clean

Columns = Mapping[str, np.ndarray]
#: Whole numbers whose -1 says that there is none (rooflight/results/launches.py).
_NONE_AS_MINUS_ONE = frozenset({
    "launch_ns", "launch_dur_ns", "correlation", "graph_node", "bytes", "step", "registers", "shared_memory",
    "flops", "moved_bytes", "link_bytes",
})  # fmt: skip


class EventStore:
    """A folder of Parquet files; names inside it are relative paths."""

    def __init__(self, root: Path) -> None:
        self._root = root / "events"

    def write(
        self, project_id: str, day: date, profile_id: str, launches: Mapping[int, Columns]
    ) -> str | None:
        """Write the launches of each rank; the file's name, or ``None`` when there is no launch."""
        columns = _joined(launches)
        if not columns or not len(columns["rank"]):
            return None
        name = f"{project_id}/{day.isoformat()}/{profile_id}.parquet"
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        try:
            _copy(columns, partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return name

    def path(self, name: str) -> Path:
        """The file of that name."""
        if not re.fullmatch(r"[0-9a-f-]{36}/\d{4}-\d\d-\d\d/[0-9a-f-]{36}\.parquet", name):
            raise ValueError("not the name of an event file")
        return self._root / name

    def delete(self, name: str) -> None:
        """Remove a file whose transaction did not commit."""
        self.path(name).unlink(missing_ok=True)

    def rows(self, names: list[str], *, limit: int, offset: int) -> tuple[int, list[dict[str, Any]]]:
        """How many launches the files hold, and some of them in order of their start."""
        paths = [str(self.path(n)) for n in names if self.path(n).exists()]
        if not paths:
            return 0, []
        source = "FROM read_parquet($files, union_by_name = true)"
        with _connect() as connection:
            found = connection.execute(f"SELECT count(*) {source}", {"files": paths}).fetchone()
            page = connection.execute(
                f"SELECT * {source} ORDER BY rank, start_ns LIMIT $limit OFFSET $offset",
                {"files": paths, "limit": limit, "offset": offset},
            )
            columns = [column[0] for column in page.description or []]
            rows = [_shown(dict(zip(columns, row, strict=True))) for row in page.fetchall()]
        return (found or (0,))[0], rows


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A launch as it is answered: what is not known is ``None``."""
    return {
        name: None
        if (value == "" and name != "name") or (value == -1 and name in _NONE_AS_MINUS_ONE)
        else value
        for name, value in row.items()
    }


def _joined(launches: Mapping[int, Columns]) -> dict[str, np.ndarray]:
    """The columns of all ranks, one below the other, with the rank as the first."""
    tables = [(rank, columns) for rank, columns in sorted(launches.items()) if columns]
    if not tables:
        return {}
    sizes = [len(next(iter(columns.values()))) for _, columns in tables]
    ranks = np.repeat(np.array([rank for rank, _ in tables], np.int64), sizes)
    names = tables[0][1]
    return {"rank": ranks} | {n: _storable(np.concatenate([c[n] for _, c in tables])) for n in names}


def _storable(values: np.ndarray) -> np.ndarray:
    """A column with its texts made storable; names repeat, so each is looked at once."""
    if values.dtype != object:
        return values
    kept = {v: clean(v) if isinstance(v, str) else v for v in set(values.tolist())}
    column = np.empty(len(values), object)
    column[:] = [kept[v] for v in values.tolist()]
    return column


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1, "autoinstall_known_extensions": "false"})


def _copy(columns: Columns, path: Path) -> None:
    with _connect() as connection:
        connection.register("launches", columns)
        quoted = str(path).replace("'", "''")
        connection.execute(f"COPY launches TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
