"""A push of telemetry: read, checked as a whole, told apart from any other."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import msgspec

from app.ingest.storable import read_json, storable
from app.times import parse
from rooflight.errors import Refused, TooLarge

#: More in one push is 413; an agent sends it in halves.
MOST_ROWS = 10_000
MOST_DEVICES = 1_000
MOST_FIELDS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The last second is left out, so that none is rounded up to the next year.
_YEAR_10000_S = 253_402_300_799
_KINDS = ("telemetry", "profile", "trace")
_STATISTICS = frozenset({"min", "mean", "max", "last"})
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A window, or a sample, whose times are one.  Whole microseconds since the epoch."""

    uuid: str
    t_start_us: int
    t_end_us: int
    is_sample: bool
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Push:
    """``sent_us`` is the agent's clock; ``digest`` tells the rows and the host, not what differs from try
    to try."""

    rows: list[Row]
    host: str | None
    sent_us: int | None
    digest: str
    dropped: dict[str, int] = field(default_factory=dict)


def read_push(body: bytes, sent_at: str | None = None) -> Push:
    """``sent_at`` is the header's time of sending, for a body without one.

    :class:`~rooflight.errors.Refused` names the index and the field of the first fault.
    """
    given = storable(read_json(body, "telemetry"))
    if not isinstance(given, dict):
        raise Refused("a push of telemetry is a JSON object", where="the body", hint="{windows: […]}")
    rows = [*_rows(given, "samples", _sample), *_rows(given, "windows", _window)]
    if not {"samples", "windows"} & set(given):
        raise Refused("neither windows nor samples", where="the body", hint="{windows: […]}")
    if len({row.uuid for row in rows}) > MOST_DEVICES:
        raise TooLarge(f"more than {MOST_DEVICES} devices in one push", where="the body", hint="send halves")
    host = _text(given.get("host"), "host")
    sent = given.get("agent_time", _number(sent_at))
    digest = hashlib.sha256(msgspec.json.encode([host, [given.get(name) for name in ("samples", "windows")]]))
    return Push(
        rows,
        host,
        None if sent is None else instant_us(sent, "agent_time"),
        digest.hexdigest(),
        _dropped(given.get("dropped")),
    )


def instant_us(value: Any, where: str) -> int:
    """Microseconds since the epoch of a number of seconds, or of a time with its offset."""
    if isinstance(value, str):
        seconds: float | Fraction = _of_text(value, where)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused("a time is seconds since the epoch, or ISO 8601 with its offset", where=where)
    else:
        seconds = value
    # One that is no number is in no range.
    if not 0 <= seconds < _YEAR_10000_S:
        raise Refused("the time lies outside the years 1970 to 9999", where=where, hint="seconds, not ms")
    return round(seconds * 1_000_000)


def _of_text(value: str, where: str) -> Fraction:
    try:
        return Fraction((parse(value) - _EPOCH) // timedelta(microseconds=1), 1_000_000)
    except ValueError as e:
        raise Refused(f"not a time: {e}", where=where, hint="as in 2026-03-29T00:30:00Z") from e


def _rows(given: dict[str, Any], name: str, make: Any) -> list[Row]:
    rows = given.get(name) or []
    if not isinstance(rows, list):
        raise Refused(f"{name} is a list", where=name)
    if len(rows) > MOST_ROWS:
        raise TooLarge(f"more than {MOST_ROWS} {name} in one push", where=name, hint="send halves")
    return [make(row, f"{name}[{i}]") for i, row in enumerate(rows)]


def _sample(row: Any, where: str) -> Row:
    uuid, fields = _identity(row, where)
    t = instant_us(fields.pop("t", None), f"{where}.t")
    return Row(uuid, t, t, True, fields)


def _window(row: Any, where: str) -> Row:
    uuid, fields = _identity(row, where)
    start = instant_us(fields.pop("t_start", None), f"{where}.t_start")
    end = instant_us(fields.pop("t_end", None), f"{where}.t_end")
    if end < start:
        raise Refused("the window ends before it starts", where=f"{where}.t_end")
    for name, value in fields.items():
        if isinstance(value, dict):
            _check_statistics(value, f"{where}.{name}")
    return Row(uuid, start, end, False, fields)


def _identity(row: Any, where: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(row, dict):
        raise Refused("a row is a JSON object", where=where)
    uuid = _text(row.get("uuid"), f"{where}.uuid")
    if uuid is None:
        raise Refused("a row needs the UUID of its device", where=f"{where}.uuid")
    if len(row) > MOST_FIELDS:
        raise Refused(f"more than {MOST_FIELDS} fields", where=where)
    for name in ("name", "parent_uuid", "state"):
        if not isinstance(row.get(name), str | None):
            raise Refused("it is a text, or null", where=f"{where}.{name}")
    return uuid, {name: value for name, value in row.items() if name != "uuid"}


def _check_statistics(value: dict[str, Any], where: str) -> None:
    for name, number in value.items():
        if name not in _STATISTICS:
            raise Refused("a field of a window has min, mean, max and last", where=f"{where}.{name}"[:200])
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            raise Refused("it is a number, or null", where=f"{where}.{name}")


def _text(value: Any, where: str) -> str | None:
    """A text that names something; nothing, or only spaces, is none."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Refused(f"it is a text of at most {_LONGEST} characters", where=where)
    return value if value.strip() else None


def _number(header: str | None) -> float | None:
    try:
        return None if header is None else float(header)
    except ValueError as e:
        raise Refused("it is seconds since the epoch", where="header Rooflight-Sent-At") from e


def _dropped(value: Any) -> dict[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not set(value) <= set(_KINDS):
        raise Refused(f"it counts {', '.join(_KINDS)}", where="dropped")
    for kind, count in value.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**53:
            raise Refused("it is a count", where=f"dropped.{kind}")
    return value
