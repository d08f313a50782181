"""Decimal microseconds to integer nanoseconds, exactly.

A time of a trace is decimal text.  ``float`` holds it well enough only while one unit in the last
place is below a nanosecond, so each column is converted the fast way where that is provably exact, and
from the text elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from rooflight.trace.tables import I8, I64, Invalid

#: Below this a binary64 in µs differs from its three-decimal text by less than half a nanosecond:
#: one unit in the last place of [2^42, 2^43) is 2^-10 µs, an error of at most 0.4883 ns.
EXACT_BELOW = float(1 << 43)
#: Beyond this the nanoseconds pass int64.
MAX_US = 9.2e15


class NeedsText(Exception):  # noqa: N818  (a signal to the reader, no error)
    """The column cannot be converted from binary numbers without a doubt."""


def column(values: Sequence[Any]) -> I64:
    """Nanoseconds of a column of JSON numbers, as ``float`` or ``int``.

    Raises :class:`NeedsText` when a value is no number, is not finite, has more than three decimals
    or is too large for an exact conversion.
    """
    try:
        us = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise NeedsText from None
    if us.size == 0:
        return np.empty(0, np.int64)
    if not np.isfinite(us).all():
        raise NeedsText
    if np.abs(us).max() >= EXACT_BELOW:
        return _whole(values)
    whole = np.floor(us)
    ns = (us - whole) * 1000.0
    nearest = np.rint(ns)
    # A text with more than three decimals lies between two nanoseconds: half-even needs its digits.
    if (np.abs(ns - nearest) > 500.0 * np.spacing(np.abs(us)) + 1e-7).any():
        raise NeedsText
    if str in map(type, values):
        raise NeedsText
    result: I64 = whole.astype(np.int64) * 1000 + nearest.astype(np.int64)
    return result


def _whole(values: Sequence[Any]) -> I64:
    if any(type(v) is not int or abs(v) > MAX_US for v in values):
        raise NeedsText
    return np.array(values, dtype=np.int64) * 1000


def exact(value: Any) -> int | None:
    """Nanoseconds of one decimal number or numeric text, half-even; ``None`` when it is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except (InvalidOperation, ValueError):
        return None
    if not number.is_finite() or abs(number) > MAX_US:
        return None
    return int((number * 1000).to_integral_value())


def exact_columns(starts: Sequence[Any], durs: Sequence[Any], missing: object) -> tuple[I64, I64, I8]:
    """Start, duration and reason of invalidity, value by value; ``missing`` marks an absent field."""
    ns = np.zeros((2, len(starts)), np.int64)
    why = np.zeros(len(starts), np.int8)
    for i, (start, dur) in enumerate(zip(starts, durs, strict=True)):
        t, d = exact(start), exact(dur) if dur is not missing else None
        ns[0, i], ns[1, i] = t or 0, d or 0
        if dur is missing:
            why[i] = Invalid.MISSING_DUR
        elif t is None:
            why[i] = Invalid.BAD_TS
        elif d is None:
            why[i] = Invalid.BAD_DUR
    return ns[0], ns[1], why
