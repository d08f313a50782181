"""Times on the wire: input carries an offset, output is UTC and says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema


def iso(value: datetime) -> str:
    """``2026-03-29T00:30:00.000000Z``."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    """An ISO 8601 time with its offset, in UTC; :class:`ValueError` without one."""
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError("a time needs its time zone: end it with Z or an offset such as +02:00")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the years 1 to 9999") from None


Instant = Annotated[
    datetime,
    PlainSerializer(iso, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
