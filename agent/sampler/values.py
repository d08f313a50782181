"""From what a vendor library returns to a number or ``None``."""

from __future__ import annotations

#: Blank values that vendor libraries return instead of an error (inclusive ranges).
BLANK_INT32 = (2147483632, 2147483647)
BLANK_INT64 = (9223372036854775792, 9223372036854775807)
BLANK_FLOAT = (140737488355328.0, 140737488355343.0)
ALL_ONES_64 = 18446744073709551615
ALL_ONES_32 = 4294967295


def is_blank(value: float, *, narrow: bool = False) -> bool:
    """Whether ``value`` stands for "not available".

    ``narrow`` values (percent, temperature, ids) are 32 bits wide at their source, so all ones are blank
    too; a byte count may well be 4294967295.
    """
    if isinstance(value, float):
        return value != value or BLANK_FLOAT[0] <= value <= BLANK_FLOAT[1]
    if value == ALL_ONES_64 or BLANK_INT64[0] <= value <= BLANK_INT64[1]:
        return True
    return narrow and (value == ALL_ONES_32 or BLANK_INT32[0] <= value <= BLANK_INT32[1])


def number(value: float | None, *, narrow: bool = False) -> float | None:
    """``value``, or ``None`` for a blank."""
    return None if value is None or is_blank(value, narrow=narrow) else value


def is_percent(value: float) -> bool:
    """0 to 100; anything else is no percentage and is never clamped to one."""
    return 0 <= value <= 100
