"""What may be stored: finite numbers that fit, text that every database holds, a depth that ends."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from app.text import clean
from rooflight.errors import Malformed, Refused

MAX_DEPTH = 64
MAX_TEXT = 65_536
#: No figure comes near it, and sums and products of such numbers are still finite.
MAX_NUMBER = 1e30
#: Below it a number is nothing, or a division by it would overflow.
MIN_NUMBER = 1e-30
_INT_MAX = 2**63 - 1


def read_json(body: bytes, what: str) -> Any:
    """The JSON of ``what`` was pushed; :class:`Refused` names the field of a number that is none."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as e:
        return _lenient(body, e)
    except RecursionError as e:
        raise Malformed(f"nested too deep to be {what}", where="the body") from e


def _lenient(body: bytes, error: msgspec.DecodeError) -> Any:
    """Read once more what the strict reader refused, so that a NaN can be named by its field."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise Malformed(f"not JSON: {error}", where="the body", hint="send strict JSON in UTF-8") from e
    storable(value)
    return value


def storable(value: Any, where: str = "", depth: int = 0) -> Any:
    """Plain JSON data with its texts cleaned; :class:`Refused` names the first field that may not be kept."""
    if depth > MAX_DEPTH:
        raise Refused(f"nested deeper than {MAX_DEPTH} levels", where=where[:200])
    match value:
        case bool() | None:
            return value
        case str():
            return _text(value, where)
        case int():
            return _integer(value, where)
        case float():
            return _finite(value, where)
        case dict():
            return {
                _text(str(k), where): storable(v, f"{where}.{k}" if where else str(k), depth + 1)
                for k, v in value.items()
            }
        case list() | tuple():
            return [storable(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    raise Refused(f"a {type(value).__name__} has no place in an analysis", where=where)


def _text(value: str, where: str) -> str:
    if len(value) > MAX_TEXT:
        raise Refused(f"a text of {len(value)} characters exceeds the limit of {MAX_TEXT}", where=where)
    return clean(value) if "\0" in value or not value.isascii() else value


def _integer(value: int, where: str) -> int:
    if not -_INT_MAX - 1 <= value <= _INT_MAX:
        raise Refused("the integer does not fit 64 bits (at most 9223372036854775807)", where=where)
    return value


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise Refused(
            "the number is not finite (NaN or Infinity)", where=where, hint="send null for what is unknown"
        )
    if abs(value) > MAX_NUMBER:
        raise Refused(
            f"the number is beyond {MAX_NUMBER:g}", where=where, hint="send null for what is unknown"
        )
    return value if abs(value) >= MIN_NUMBER else 0.0
