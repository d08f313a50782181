"""What goes into the body of a push of telemetry, as bytes that are the same at every try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def telemetry(windows: list[dict[str, Any]], *, host: str | None = None) -> bytes:
    """The body for windows as :meth:`agent.counters.Windows.take` gives them.

    A device without a UUID cannot be told from another: its windows are left out.
    """
    known = [window for window in windows if window.get("uuid")]
    return msgspec.json.encode({"host": host, "windows": known})


def addressed(body: bytes, sent_at: float, dropped: Mapping[str, int]) -> bytes:
    """The body with what differs from try to try before it: the time of sending, and what was dropped."""
    head = msgspec.json.encode({"agent_time": sent_at, "dropped": dict(dropped)})
    rest = body.strip()[1:]
    return head[:-1] + (b"," if rest.strip() != b"}" else b"") + rest


def halved(body: bytes) -> tuple[bytes, bytes] | None:
    """The same push as two, each with half of the windows (or samples); ``None`` of a single one."""
    try:
        given = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        name = "windows" if "windows" in given else "samples"
        rows = msgspec.json.decode(given.get(name, b"[]"), type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return None
    middle = len(rows) // 2
    if not middle:
        return None
    first, second = ({**given, name: part} for part in (rows[:middle], rows[middle:]))
    return msgspec.json.encode(first), msgspec.json.encode(second)
