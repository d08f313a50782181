"""Tables of tools as CSV, row by row: what stands around them is left out.

Tools print their own messages, and what the profiled program prints, before and between the rows.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from rooflight.errors import Malformed, NotATrace, TooLarge
from rooflight.readers.limits import Limits

Row = dict[str, str]
#: Lines of messages before the table, and the longest line of all.
_MAX_PREAMBLE = 100_000
_MAX_LINE = 8 << 20
_MESSAGE = "=="
HINT = (
    "give what `ncu --csv` printed, rocprof-compute's pmc_perf.csv, what rocprofv3 --pmc wrote, "
    "or a recording with CUPTI's counters"
)


def lines(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    """The lines of a text, with their ends and without a byte order mark."""
    rest, mark = b"", b"\xef\xbb\xbf"
    for piece in chain(pieces, [b"\n"]):
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > _MAX_LINE:
            raise Malformed(f"not a table: a line of over {_MAX_LINE >> 20} MiB", where=name, hint=HINT)
        for line in whole:
            yield line.removeprefix(mark).decode("utf-8", "backslashreplace") + "\n"
            mark = b""


def table(
    text: Iterator[str], name: str, is_header: Callable[[Sequence[str]], bool], limits: Limits
) -> tuple[list[str], Iterator[Row]]:
    """The column names of the first table that ``is_header`` knows, and its rows as they come.

    Raises :class:`~rooflight.errors.NotATrace` without such a table; while rows are taken,
    :class:`~rooflight.errors.Malformed` with the line for one that is no CSV and
    :class:`~rooflight.errors.TooLarge` past the limit of rows.
    """
    for n, line in enumerate(islice(text, _MAX_PREAMBLE), 1):
        header = _cells(line)
        if is_header(header):
            return header, _rows(_records(text, n, name), header, name, limits)
    raise NotATrace("not counters: no table of kernels was found", where=name, hint=HINT)


def _cells(line: str) -> list[str]:
    """One line alone: a quote that a message leaves open must not swallow what follows."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _records(text: Iterator[str], before: int, name: str) -> Iterator[list[str]]:
    """The records without the messages among them."""
    reader = csv.reader(line for line in text if not line.startswith(_MESSAGE))
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            where = f"{name}, line {before + reader.line_num}"
            raise Malformed(f"not a table: {e}", where=where, hint=HINT) from e


def _rows(records: Iterable[list[str]], header: list[str], name: str, limits: Limits) -> Iterator[Row]:
    for n, cells in enumerate(records, 1):
        if n > limits.max_events:
            raise TooLarge(f"too large: more than the limit of {limits.max_events} rows", where=name)
        # A line that is shorter is none of the table: the program printed it.
        if len(cells) == len(header):
            yield dict(zip(header, cells, strict=True))
