"""What may be stored: finite numbers that fit, text that every database holds, a depth that ends."""

from __future__ import annotations

import math
from typing import Any

from app.text import clean
from rooflight.errors import Refused

MAX_DEPTH = 64
MAX_TEXT = 65_536
#: No figure comes near it, and sums and products of such numbers are still finite.
MAX_NUMBER = 1e30
#: Below it a number is nothing, or a division by it would overflow.
MIN_NUMBER = 1e-30
_INT_MAX = 2**63 - 1


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
