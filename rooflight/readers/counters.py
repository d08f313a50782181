"""Files of hardware counters, told by their content: a counter file beside a recording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os import PathLike

from rooflight.errors import NotATrace, TooLarge
from rooflight.readers import kineto, ncu, opened, rocprof
from rooflight.readers.limits import DEFAULT_LIMITS, Limits
from rooflight.readers.sheets import HINT, lines, table
from rooflight.trace import stored
from rooflight.trace.counters import CounterFile
from rooflight.trace.timeline import Timeline

#: rocprofv3's JSON is read as a whole.
_MOST_JSON = 1 << 30
_ROCPROF = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"')
_WIDE = (b"\xff\xfe", b"\xfe\xff")


def read_counters(path: str | PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> CounterFile:
    """Read what a profiler counted: what ``ncu --csv`` printed, rocprof-compute's ``pmc_perf.csv``, the CSV
    or JSON of rocprofv3, or a recording with CUPTI's counters; packed or not.

    Raises :class:`~rooflight.errors.Refused`, which says what is wrong and where.
    """
    name, head, pieces = opened(path, limits)
    if head.startswith(stored.MAGIC):
        return _own(stored.decode(pieces, max_rows=limits.max_events), name)
    if head.startswith(_WIDE):
        raise NotATrace("not counters: the file is UTF-16", where=name, hint="write it again as UTF-8")
    if _ROCPROF.match(head):
        return rocprof.read_json(_whole(pieces, name), name)
    if head.lstrip()[:1] in (b"{", b"["):
        return _own(kineto.read(pieces, name, limits=limits), name)
    header, rows = table(lines(pieces, name), name, _is_header, limits)
    launches = rocprof.launches if rocprof.is_header(header) else ncu.launches
    return launches(header, rows, name)


def _is_header(cells: Sequence[str]) -> bool:
    return ncu.is_header(cells) or rocprof.is_header(cells)


def _own(timeline: Timeline, name: str) -> CounterFile:
    launches = timeline.counters.launches(timeline.names)
    if not launches:
        raise NotATrace("no counters: the recording holds none", where=name, hint=HINT)
    return CounterFile(name, launches)


def _whole(pieces: Iterable[bytes], name: str) -> bytes:
    held, size = list[bytes](), 0
    for piece in pieces:
        size += len(piece)
        if size > _MOST_JSON:
            raise TooLarge(f"too large: counters of over {_MOST_JSON >> 30} GiB", where=name)
        held.append(piece)
    return b"".join(held)
