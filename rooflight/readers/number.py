"""Decimal microseconds to integer nanoseconds, exactly.

A time of a trace is decimal text.  ``float`` holds it well enough only while one unit in the last
place is below a nanosecond, so each column is converted the fast way where that is provably exact, and
from the text elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from rooflight.trace.tables import I8, I64, Invalid
from rooflight.trace.times import MAX_NS

#: Below this a binary64 in µs differs from its three-decimal text by less than half a nanosecond:
#: one unit in the last place of [2^42, 2^43) is 2^-10 µs, an error of at most 0.4883 ns.
EXACT_BELOW = float(1 << 43)
#: No integer of a trace has so many digits.
_LONG_INTEGER = 1000
#: What is further from zero is no time.
MAX_US = MAX_NS // 1000


class NeedsText(Exception):  # noqa: N818  (a signal to the reader, no error)
    """The column cannot be converted from binary numbers without a doubt."""


def integer(text: str) -> int | Decimal:
    """An integer of any length: ``int()`` refuses thousands of digits, since they cost quadratic time."""
    return int(text) if len(text) < _LONG_INTEGER else Decimal(text)


def decimal(text: str) -> Decimal:
    """A decimal with all its digits; NaN where its exponent is beyond what ``Decimal`` holds."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def column(values: Sequence[Any]) -> I64:
    """Nanoseconds of a column of JSON numbers, as ``float`` or ``int``.

    Raises :class:`NeedsText` when a value is no number, is not finite, has more than three decimals
    or is too large for an exact conversion.
    """
    kinds = set(map(type, values))
    if not kinds <= {int, float}:
        raise NeedsText
    if kinds == {int}:
        return _whole(values)
    try:
        us = np.array(values, dtype=np.float64)
    except OverflowError:
        raise NeedsText from None
    if us.size == 0:
        return np.empty(0, np.int64)
    if not np.isfinite(us).all():
        raise NeedsText
    if np.abs(us).max() >= EXACT_BELOW:
        raise NeedsText
    whole = np.floor(us)
    ns = (us - whole) * 1000.0
    nearest = np.rint(ns)
    # A text with more than three decimals lies between two nanoseconds: half-even needs its digits.
    if (np.abs(ns - nearest) > 500.0 * np.spacing(np.abs(us)) + 1e-7).any():
        raise NeedsText
    result: I64 = whole.astype(np.int64) * 1000 + nearest.astype(np.int64)
    return result


def _whole(values: Sequence[Any]) -> I64:
    try:
        us = np.array(values, np.int64)
    except OverflowError:
        raise NeedsText from None
    if max(-int(us.min()), int(us.max())) > MAX_US:
        raise NeedsText
    return us * 1000


def exact(value: Any) -> int | None:
    """Nanoseconds of one decimal number or numeric text, half-even; ``None`` when it is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except (InvalidOperation, ValueError):
        return None
    # copy_abs, since abs() rounds, and raises where the exponent is beyond the context.
    if not number.is_finite() or number.copy_abs() > MAX_US:
        return None
    return int((number * 1000).to_integral_value())


def of_text(text: bytes) -> Decimal | int | str | None:
    """The value of a JSON number or numeric string, without a detour over binary; for :func:`exact`."""
    try:
        return json.loads(text, parse_float=decimal)  # type: ignore[no-any-return]
    except ValueError:
        return None


def _text_ns(text: bytes) -> int | None:
    """Nanoseconds of a JSON text: plain decimals of up to three places at once, the rest with care."""
    whole, _, rest = text.partition(b".")
    if whole.isdigit() and len(whole) <= 15 and len(rest) <= 3 and (rest.isdigit() or not rest):
        return int(whole + rest.ljust(3, b"0"))
    return exact(of_text(text))


def text_columns(starts: Sequence[Any], durs: Sequence[Any], missing: object) -> tuple[I64, I64, I8]:
    """As :func:`exact_columns`, of JSON texts (anything that ``bytes`` takes)."""
    return _columns(
        [_text_ns(bytes(t)) for t in starts],
        [None if d is missing else _text_ns(bytes(d)) for d in durs],
        [d is missing for d in durs],
    )


def exact_columns(starts: Sequence[Any], durs: Sequence[Any], missing: object) -> tuple[I64, I64, I8]:
    """Start, duration and reason of invalidity, value by value; ``missing`` marks an absent field."""
    return _columns(
        [exact(t) for t in starts],
        [None if d is missing else exact(d) for d in durs],
        [d is missing for d in durs],
    )


def _columns(starts: list[int | None], durs: list[int | None], missing: list[bool]) -> tuple[I64, I64, I8]:
    why = np.zeros(len(starts), np.int8)
    why[[d is None for d in durs]] = Invalid.BAD_DUR
    why[[t is None for t in starts]] = Invalid.BAD_TS
    why[missing] = Invalid.MISSING_DUR
    return (
        np.array([t or 0 for t in starts], np.int64),
        np.array([d or 0 for d in durs], np.int64),
        why,
    )
