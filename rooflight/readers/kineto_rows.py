"""The rows of a Kineto trace, typed: the shape as far as it is read, and three ways to decode it.

:func:`strict` is fast; :func:`with_texts` keeps the digits of every time; :func:`lenient` takes surprising
types; :func:`mended` takes text that is no strict JSON, where it leaves no doubt.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections import Counter
from decimal import Decimal
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from rooflight.readers import number
from rooflight.readers.envelope import not_utf8
from rooflight.readers.repair import repairs
from rooflight.readers.texts import shown

Scalar = int | float | str | None
Text = bytes | memoryview
#: A field that is read as text, where there is none.
NOTHING = Raw(b"null")
#: What rows have that are no events where those have their category.
SKIPPED, INSTANT = 0, 1
#: The category of what CUPTI's range profiler counted, kernel by kernel.
RANGE = "cuda_profiler_range"


class Args(Struct, frozen=True, gc=False):
    """The args that are read; one struct for host and GPU rows."""

    device: Scalar = None
    context: Scalar = None
    stream: Scalar = None
    correlation: Scalar = None
    graph_node: Scalar = field(name="graph node id", default=None)
    bytes: Scalar = None
    dims: Raw = field(name="Input Dims", default=NOTHING)
    types: Raw = field(name="Input type", default=NOTHING)
    strides: Raw = field(name="Input Strides", default=NOTHING)
    concrete: Raw = field(name="Concrete Inputs", default=NOTHING)
    sequence: Scalar = field(name="Sequence number", default=None)
    fwd_thread: Scalar = field(name="Fwd thread id", default=None)
    record: Scalar = field(name="Record function id", default=None)
    grid: Raw = NOTHING
    block: Raw = NOTHING
    registers: Raw = field(name="registers per thread", default=NOTHING)
    shared_memory: Raw = field(name="shared memory", default=NOTHING)
    collective: Scalar = field(name="Collective name", default=None)
    in_nelems: Scalar = field(name="In msg nelems", default=None)
    out_nelems: Scalar = field(name="Out msg nelems", default=None)
    group_size: Scalar = field(name="Group size", default=None)
    dtype: Scalar = None
    in_split: Scalar = field(name="In split size", default=None)
    out_split: Scalar = field(name="Out split size", default=None)
    group_name: Scalar = field(name="Process Group Name", default=None)
    group_ranks: Scalar = field(name="Process Group Ranks", default=None)
    sequence_in_group: Scalar = field(name="Seq", default=None)
    kernel_backend: Scalar = None
    kernel_num_gb: Scalar = None
    kernel_flop: Scalar = None
    kernel_kwargs: Scalar = None


NO_ARGS = Args()


class Event(Struct, tag_field="ph", tag="X", frozen=True, gc=False):
    """A row of ``traceEvents`` that lasts: the only kind that is kept."""

    cat: str = ""
    name: str = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar | UnsetType = UNSET
    args: Args = NO_ARGS


class MemoryArgs(Struct, frozen=True, gc=False):
    """The args of a ``[memory]`` row."""

    device_type: Scalar = field(name="Device Type", default=None)
    allocated: Scalar = field(name="Total Allocated", default=None)
    reserved: Scalar = field(name="Total Reserved", default=None)


class Instant(Struct, tag_field="ph", tag="i", frozen=True, gc=False):
    """A row without duration; only those of the allocator are looked at."""

    cat: ClassVar[int] = INSTANT
    name: str = ""
    args: MemoryArgs = MemoryArgs()


class Range(Struct, frozen=True, gc=False):
    """A row of :data:`RANGE`: its args are the metrics, each under its own name.  Its duration is a share of
    the whole span, and tells nothing."""

    cat: str = ""
    name: str = ""
    pid: Scalar = None
    ts: Scalar = None
    args: Raw = NOTHING


# Flows, metadata, counters and the rest of Chrome's phases: their keys are not even looked at.
_SKIPPED = tuple(
    msgspec.defstruct(
        f"Skipped{i}", [], tag_field="ph", tag=phase, frozen=True, gc=False, namespace={"cat": SKIPPED}
    )
    for i, phase in enumerate("BEICbneSTpFstfPNODMVvRc()")
)


class TextEvent(Event, tag_field="ph", tag="X", frozen=True, gc=False):
    """An :class:`Event` whose times are the texts of the file."""

    ts: Raw = NOTHING  # type: ignore[assignment]
    dur: Raw | UnsetType = UNSET  # type: ignore[assignment]


Row = Event | Instant | Range


def _decoder(event: type[Event]) -> msgspec.json.Decoder[list[Row]]:
    return msgspec.json.Decoder(list[functools.reduce(operator.or_, _SKIPPED, event | Instant)])  # type: ignore[misc]


_strict, _with_texts = _decoder(Event), _decoder(TextEvent)
_ranges = msgspec.json.Decoder(list[Range])


def strict(data: Text) -> list[Row]:
    """The rows of a JSON array; raises ``msgspec.ValidationError`` where a type surprises."""
    return _strict.decode(data)


def with_texts(data: Text) -> list[Row]:
    """As :func:`strict`, with :class:`TextEvent` rows."""
    return _with_texts.decode(data)


def ranges(data: Text) -> list[Range]:
    """The rows of :data:`RANGE` in a JSON array that one of the decoders above has taken."""
    try:
        rows = _ranges.decode(data)
    except msgspec.ValidationError:
        # Of other rows nothing was looked at, and so nothing is known of their types.
        rows = [row for row in lenient(data) if isinstance(row, Range)]
    return [row for row in rows if row.cat == RANGE]


def lenient(data: Text) -> list[Row]:
    """Events of a chunk that has surprising types; times keep their digits, a field of an impossible
    type is absent."""
    text = str(data, "utf-8", "surrogateescape")
    return _known(_rows(text, text))


def mended(data: Text) -> tuple[list[Row], Counter[str]]:
    """Events of a chunk that is no strict JSON, where it leaves no doubt; and what was mended."""
    text = str(data, "utf-8", "surrogateescape")
    rows, kinds = _first_reading(text)
    return _known(rows), kinds + not_utf8(text)


def _first_reading(text: str) -> tuple[list[Any], Counter[str]]:
    """The rows by the least repair that makes the text JSON; without any, the error before repairs."""
    errors: list[Exception] = []
    for whole, kinds in repairs(text):
        try:
            return _rows(whole, text, exact=False), kinds
        except (msgspec.DecodeError, RecursionError) as e:
            errors.append(e)
    raise errors[0]


def _known(rows: list[Any]) -> list[Row]:
    return [row for r in rows if isinstance(r, dict) and (row := _row(r)) is not None]


def _rows(text: str, original: str, *, exact: bool = True, integer: Any = None) -> list[Any]:
    constant = _no_constant if exact else None
    try:
        rows: list[Any] = json.loads(
            text, strict=exact, parse_float=number.decimal, parse_int=integer, parse_constant=constant
        )
    except json.JSONDecodeError as e:
        raise _placed_error(original, e) from e
    except msgspec.DecodeError:
        raise  # a word that is no number; it is a ValueError too
    except ValueError:
        # int() refuses thousands of digits, since they cost quadratic time; Decimal takes them.
        return _rows(text, original, exact=exact, integer=number.integer)
    return rows


def _no_constant(word: str) -> Any:
    raise msgspec.DecodeError(f"JSON is malformed: {word} is no number")


def _placed_error(text: str, e: json.JSONDecodeError) -> msgspec.DecodeError:
    """The error as the strict decoder would put it: with the byte, and its words for text that follows."""
    at = len(text[: e.pos].encode("utf-8", "surrogateescape"))
    if e.msg == "Extra data":
        return msgspec.DecodeError(f"JSON is malformed: trailing characters (byte {at + 1})")
    if e.pos >= len(text):
        return msgspec.DecodeError("Input data was truncated")
    return msgspec.DecodeError(f"JSON is malformed: {e.msg.lower()} (byte {at})")


def _row(row: dict[str, Any]) -> Row | None:
    args = row.get("args")
    args = args if isinstance(args, dict) else {}
    if row.get("ph") == "i":
        return Instant(_text(row.get("name")), MemoryArgs(*(_scalar(args.get(k)) for k in _MEMORY_KEYS)))
    if row.get("ph") != "X":
        return None
    if row.get("cat") == RANGE:
        return Range(
            RANGE, _text(row.get("name")), _scalar(row.get("pid")), _scalar(row.get("ts")), _raw(args)
        )
    return Event(
        cat=_text(row.get("cat")),
        name=_text(row.get("name")),
        pid=_scalar(row.get("pid")),
        tid=_scalar(row.get("tid")),
        ts=_number(row.get("ts")),
        dur=_number(row["dur"]) if "dur" in row else UNSET,
        args=_args(args),
    )


_MEMORY_KEYS = tuple(f.encode_name for f in msgspec.structs.fields(MemoryArgs))
_ARG_FIELDS = [(f.name, f.encode_name, f.type is Raw) for f in msgspec.structs.fields(Args)]


def _args(row: dict[str, Any]) -> Args:
    known: dict[str, Any] = {}
    for name, key, raw in _ARG_FIELDS:
        if key in row:
            known[name] = _raw(row[key]) if raw else _scalar(row[key])
    return Args(**known)


def _raw(value: Any) -> Raw:
    return Raw(json.dumps(_plain(value)).encode())


def _plain(value: Any) -> Any:
    """The value as strict JSON can hold it: text of whole characters, numbers that are finite or null."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, float | Decimal):
        finite = float(value)
        return finite if math.isfinite(finite) else None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {shown(key): _plain(item) for key, item in value.items()}
    return value


def _text(value: Any) -> str:
    return shown(value if isinstance(value, str) else "" if value is None else str(value))


def _scalar(value: Any) -> Scalar:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str):
        return _text(value)
    return value if isinstance(value, int | float) else None


def _number(value: Any) -> Any:
    # A Decimal passes through: it carries the digits to the exact conversion.
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
