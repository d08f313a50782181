"""One attempt at a file that may be hostile: read it, analyse it, write all that is made of it.

Used by ``scripts/fuzz`` and by the test of what it has found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from rooflight import readers
from rooflight.analysis import analyze
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.errors import Refused, RooflightError
from rooflight.protocol import PARTS, Document, Rank, Step, encode
from rooflight.readers import events
from rooflight.readers.source import Checker, Limits, unpacked_file
from rooflight.trace import stored
from rooflight.trace.execution import joined
from rooflight.trace.timeline import Timeline

#: Small, so that a bomb among mutated files is over soon.
LIMITS = Limits(max_bytes=8 << 20, ratio_floor=1 << 20)
#: A chunk of few events, of some, and the whole file at once.
CHUNKS = (128, 2048, 1 << 20)
#: Times are rounded to a nanosecond each; a part of a step may be the sum of several.
_SLACK_US = 0.1


def attempt(path: Path, *, chunk: int = 1 << 20, salvage: bool = False) -> str:
    """How it ends: ``analysed`` or ``refused: ...``; any other end is raised, and is a bug."""
    try:
        with chunks_of(chunk):
            alone, timeline = _recording(path, salvage)
    except RooflightError as e:
        return f"refused: {e}"
    if alone and not salvage:
        _passes_the_door(path)
    _survives_storing(timeline)
    try:
        document = analyze([timeline]).document
    except Refused as e:
        return f"refused: {e}"
    _is_sound(document)
    return "analysed"


def _recording(path: Path, salvage: bool) -> tuple[bool, Timeline]:
    """Whether the file is one by itself, and the timeline; an execution trace goes with a good trace."""
    if readers.is_execution(path, limits=LIMITS):
        return False, joined(_companion(), readers.read_execution(path, limits=LIMITS))
    return True, readers.read(path, limits=LIMITS, salvage=salvage)


@cache
def _companion() -> Timeline:
    """The trace of the execution trace in the tests, which mutated ones begin as."""
    return readers.read(Path(__file__).parent / "data/execution/trace.json.gz")


@contextmanager
def chunks_of(size: int) -> Iterator[None]:
    """The reader decodes about ``size`` bytes of events at a time."""
    before, events.CHUNK = events.CHUNK, size
    try:
        yield
    finally:
        events.CHUNK = before


def _passes_the_door(path: Path) -> None:
    """What can be read is not refused while it is uploaded."""
    if b"".join(unpacked_file(path, LIMITS)).startswith(stored.MAGIC):
        return
    checker = Checker(LIMITS)
    checker.feed(path.read_bytes())
    checker.finish()


def _survives_storing(timeline: Timeline) -> None:
    data = stored.encode(timeline)
    again = stored.decode([_unpacked(data)], max_rows=LIMITS.max_events)
    assert stored.encode(again) == data


def _unpacked(data: bytes) -> bytes:
    import gzip

    return data if data.startswith(stored.MAGIC) else gzip.decompress(data)


def _is_sound(document: Document) -> None:
    text = encode(document)
    json.loads(text, parse_constant=_no_number)
    table(document)
    markdown(document).encode()
    for rank in document.ranks:
        _adds_up(rank)


def _no_number(word: str) -> NoReturn:
    raise AssertionError(f"{word} in the document")


def _adds_up(rank: Rank) -> None:
    """DEFINITIONS §4 and §16: parts sum to the wall time; bound <= attainable <= wall; busy <= span."""
    for device in rank.devices.values():
        assert device.busy_us <= device.span_us + _SLACK_US
        assert device.busy_pct is None or 0 <= device.busy_pct <= 100
    for step in rank.steps:
        _step_adds_up(step)


def _step_adds_up(step: Step) -> None:
    wall = step.step_time_us
    slack = _SLACK_US + 1e-9 * abs(wall)
    if step.parts_us is not None:
        parts: list[Any] = [getattr(step.parts_us, part) for part in PARTS]
        assert all(part >= 0 for part in parts), parts
        assert math.isclose(sum(parts), wall, abs_tol=slack), (parts, wall)
    if step.attainable_us is not None:
        assert (step.bound_us or 0) <= step.attainable_us + slack
        assert step.attainable_us <= wall + slack
