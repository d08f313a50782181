"""The JSON of every HTTP answer: integers that a browser would round travel as decimal strings."""

from __future__ import annotations

from typing import Any

import msgspec

#: Fields that pass 2**53 and travel as decimal strings over HTTP.
BIG = frozenset(
    {
        "flops",
        "bytes",
        "moved_bytes",
        "link_bytes",
        "message_bytes",
        "bus_bytes",
        "chained_in_bytes",
        "chained_out_bytes",
        "flops_total",
        "peak_allocated",
        "peak_reserved",
    }
)


def encode_http(value: Any) -> bytes:
    """Strict JSON whose big integers are strings, the form of every HTTP answer."""
    return msgspec.json.encode(http_form(value))


def http_form(value: Any) -> Any:
    """``value`` as plain JSON types with the big integers as decimal strings."""
    return _stringify(msgspec.to_builtins(value))


def _stringify(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _big(k, v) for k, v in value.items()}
    if isinstance(value, list):
        return [_stringify(v) for v in value]
    return value


def _big(key: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and (key in BIG or key.endswith("_ns")):
        return str(value)
    return _stringify(value)
