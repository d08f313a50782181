"""From the values of an axis to pixels, and where its ticks are."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: More ticks than this are no help.
_MOST_TICKS = 9


@dataclass(frozen=True, slots=True)
class LogScale:
    """``low`` and ``high`` are log10 of the values at the pixels ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value greater than 0."""
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return self.low <= math.log10(value) <= self.high

    def ticks(self) -> list[tuple[float, str]]:
        """Decades and what is written at them, thinned where there are many."""
        first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
        every = max(1, -(-(last - first + 1) // _MOST_TICKS))
        return [(10.0**d, decade(d)) for d in range(first, last + 1, every)]


@dataclass(frozen=True, slots=True)
class LinearScale:
    """0 is at the pixel ``start``, ``top`` at ``end``."""

    top: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + value / self.top * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values from 0 to the top, about five."""
        step = round_step(self.top / 4)
        return [(i * step, f"{i * step:,.6g}") for i in range(int(self.top / step + 1e-9) + 1)]


def round_step(rough: float) -> float:
    """The next 1, 2, 2.5 or 5 times a power of ten."""
    base = 10.0 ** math.floor(math.log10(rough))
    return next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= rough * (1 - 1e-9))


def digits(value: float) -> str:
    """Three digits, never an exponent above."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def decade(d: int) -> str:
    """A power of ten in full, as people say it, or as such where that would be long."""
    if not -4 <= d <= 6:
        return "10" + str(d).translate(_RAISED)
    return f"{10.0**d:.{max(0, -d)}f}" if d < 0 else f"{10**d:,}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
