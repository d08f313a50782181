"""Numbers with units, as profilers print them: "1,234.56" "Mbyte" is 1,234,560,000 bytes."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_UNIT = re.compile(
    r"(?P<scale>[numKMGTPkμµ]?)(?P<unit>byte|second|s|hz|inst|op|sector|cycle|thread|warp)(?:/(?:second|s))?"
)
_SCALES = {
    "": 0,
    "n": -9,
    "u": -6,
    "μ": -6,
    "µ": -6,
    "m": -3,
    "K": 3,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
}
_LONGEST = 64
#: No counter passes it.
_MOST = Decimal(1 << 63)


def number(text: str) -> Decimal | None:
    """A count with its thousands separators; ``None`` for "n/a" and whatever else is none."""
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text.strip()):
        return None
    value = Decimal(text.strip().replace(",", ""))
    return value if value < _MOST else None


def amount(text: str, unit: str) -> float | None:
    """The count in the unit without its prefix (all are decimal), times in ns; ``None`` when it is none, or
    of a unit that is not known.  Shares and bare numbers stay as they are."""
    value, parts = number(text), _UNIT.fullmatch(unit)
    if value is None or (parts is None and unit not in ("", "%")):
        return None
    if parts is not None:
        is_time = parts["unit"] in ("second", "s")
        value = value.scaleb(_SCALES[parts["scale"]] + (9 if is_time else 0))
    return int(value) if value == value.to_integral_value() else float(value)


def sizes(text: str) -> tuple[int, ...] | None:
    """The numbers of "(1,024, 1, 1)": a comma without a space parts thousands."""
    parts = text.strip().removeprefix("(").removesuffix(")").split(", ")
    found = [number(part) for part in parts]
    known = tuple(int(n) for n in found if n is not None and 0 < n < 1 << 40 and n == int(n))
    return known if len(known) == len(parts) <= 3 else None
