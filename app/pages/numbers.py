"""Numbers as a page shows them: a unit, a no-break space, a true minus, and a dash for the unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass

NB = "\u00a0"  # between a number and its unit
THIN = "\u202f"  # between thousands
MINUS = "\u2212"
DASH = "–"


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The one unit and the one number of decimals in which a page tells its step times."""

    name: str
    us: float
    decimals: int

    def number(self, us: float | None) -> str:
        """``58.7`` for 58,700 µs when the unit is ms, ``<0.01`` for 1 µs; a dash for the unknown."""
        if us is None:
            return DASH
        value, least = us / self.us, 10**-self.decimals
        return f"<{least:.{self.decimals}f}" if 0 < value < least / 2 else column(value, self.decimals)

    def text(self, us: float | None) -> str:
        """The number with its unit."""
        return DASH if us is None else f"{self.number(us)}{NB}{self.name}"


def unit_for(us: float) -> TimeUnit:
    """Seconds from 10 s on, milliseconds from 1 ms on, else microseconds; about four digits."""
    if us >= 10_000_000:
        return TimeUnit("s", 1e6, 2)
    if us >= 1_000:
        return TimeUnit("ms", 1e3, 1 if us >= 100_000 else 2)
    return TimeUnit("µs", 1.0, 1)


def fixed(value: float | None, decimals: int = 2) -> str:
    """A fixed number of decimals and narrow spaces between thousands."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):,.{decimals}f}".replace(",", THIN)
    return MINUS + text if value < 0 and float(f"{value:.{decimals}f}") else text


def column(value: float | None, decimals: int = 2) -> str:
    """A column keeps its decimals; 0 is ``0``, and what would vanish in them keeps two digits."""
    if value == 0:
        return "0"
    if value and abs(value) < 10**-decimals / 2:
        return significant(value, 2)
    return fixed(value, decimals)


def count(value: int | None) -> str:
    """A whole number: ``8 772``."""
    return DASH if value is None else fixed(value, 0)


def significant(value: float | None, digits: int = 3) -> str:
    """About ``digits`` digits, without an exponent: ``0.00412``, ``118``, ``2 000 000``."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    return fixed(value, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def percent(value: float | None, decimals: int = 0) -> str:
    """A share given in percent, without the sign: ``34``, ``<1``, ``<0.1``, ``0``, a dash for the unknown."""
    if value is None:
        return DASH
    if decimals == 1 and 0 <= value < 0.05:
        return "<0.1" if value else "0"
    return "<1" if decimals == 0 and 0 < value < 0.95 else fixed(value, decimals)


def signed_percent(value: float | None) -> str:
    """A difference in percent with its sign: ``+3``, ``−7``, ``0``."""
    if value is None:
        return DASH
    text = fixed(value, 0)
    return f"+{text}" if value >= 0.5 else text


def rate(per_s: float | None, unit: str) -> str:
    """A rate per second with an SI prefix: ``15.7 TFLOP/s``."""
    if per_s is None:
        return DASH
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if per_s >= factor:
            return f"{significant(per_s / factor)}{NB}{prefix}{unit}"
    return f"{significant(per_s)}{NB}{unit}"


def pair_of_rates(practical: float | None, datasheet: float | None, unit: str) -> str:
    """``14.5 of 15.7 TFLOP/s``: both in the unit of the larger."""
    if practical is None or datasheet is None:
        return rate(practical or datasheet, unit)
    factor = 10.0 ** (3 * (math.floor(math.log10(datasheet)) // 3))
    return f"{significant(practical / factor)} of {rate(datasheet, unit)}"


def size(value: int | None) -> str:
    """Bytes with a decimal prefix: ``1.16 MB``."""
    if value is None:
        return DASH
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{significant(value / factor)}{NB}{prefix}B"
    return f"{value}{NB}B"


def percentile(values: list[float], q: float) -> float | None:
    """The ``q``-th percentile (0-100), linear between ranks as numpy does; ``None`` of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    at = (len(ordered) - 1) * q / 100
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def share(part: float | None, whole: float | None) -> float | None:
    """100 x part / whole; ``None`` when either is unknown or the whole is 0."""
    return None if part is None or not whole else 100 * part / whole
