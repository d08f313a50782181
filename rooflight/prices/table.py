"""A CSV from outside as rows of named cells, each known by its line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

from rooflight.errors import Malformed, TooLarge
from rooflight.prices.text import lines

_MAX_CELL = 500


@dataclass(frozen=True, slots=True)
class Row:
    """Cells by column, stripped; a column that the file lacks is empty."""

    cells: Mapping[str, str]
    file: str
    line: int

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def where(self, column: str) -> str:
        return f"{self.file}, line {self.line}, column {column}"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a file and the columns that its header names, in lower case."""

    columns: tuple[str, ...]
    rows: Iterator[Row]


def read(stream: TextIO, name: str, *, limit: int | None = None) -> Table:
    """The table in ``stream``, its rows read as they are asked for.

    Raises :class:`Malformed` or :class:`TooLarge`, naming the line, where it is no table: a quote without
    its end, a row with more or fewer cells than the header, more than ``limit`` rows.
    """
    reader = csv.reader(lines(stream, name), strict=True)
    records = numbered(reader, lambda: reader.line_num, name)
    line, header = next(records, (1, []))
    if not header:
        raise Malformed("the file is empty", where=name)
    columns = tuple(c.strip().lower() for c in header)
    if len(columns) == 1 and ";" in columns[0]:
        raise Malformed(
            "the cells are separated by semicolons", where=f"{name}, line {line}", hint="use commas"
        )
    twice = {c for c in columns if columns.count(c) > 1 and c}
    if twice:
        raise Malformed(f"the column {min(twice)} is there twice", where=f"{name}, line {line}")
    return Table(columns, _rows(records, columns, name, limit))


def numbered(
    reader: Iterator[list[str]], line: Callable[[], int], name: str
) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the line that it ends on; what csv cannot read is refused."""
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            raise Malformed(f"no CSV: {e}", where=f"{name}, line {line()}") from e
        if record:
            yield line(), record


def _rows(
    records: Iterator[tuple[int, list[str]]], columns: tuple[str, ...], name: str, limit: int | None
) -> Iterator[Row]:
    for count, (line, record) in enumerate(records, 1):
        if limit is not None and count > limit:
            raise TooLarge(f"more than {limit:,} rows", where=f"{name}, line {line}")
        if len(record) != len(columns):
            raise Malformed(
                f"{len(record)} cells where the header names {len(columns)} columns",
                where=f"{name}, line {line}",
                hint='put a text with commas in "quotes"',
            )
        for column, cell in zip(columns, record, strict=True):
            if len(cell) > _MAX_CELL:
                raise TooLarge(
                    f"a cell is longer than {_MAX_CELL} characters",
                    where=f"{name}, line {line}, column {column}",
                )
        yield Row(dict(zip(columns, (c.strip() for c in record), strict=True)), name, line)


def require(table: Table, wanted: tuple[str, ...], name: str) -> None:
    """See that the columns are there."""
    missing = [c for c in wanted if c not in table.columns]
    if missing:
        raise Malformed(
            f"the column {missing[0]} is missing",
            where=f"{name}, line 1",
            hint=f"the header names at least {','.join(wanted)}",
        )


def first(table: Table, *names: str) -> str | None:
    """The first of several names for one thing that is a column."""
    return next((n for n in names if n in table.columns), None)
