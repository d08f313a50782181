"""Ranges in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.scenarios.model import Range
from rooflight.trace.tables import I64, Mask


@dataclass(frozen=True, slots=True)
class Ranges:
    """Row-aligned ``low <= mid <= high``."""

    low: F64
    mid: F64
    high: F64

    @classmethod
    def exactly(cls, values: F64) -> Ranges:
        """Ranges without width."""
        return cls(values, values, values)

    def each(self, other: Ranges) -> Ranges:
        """Low by low, mid by mid, high by high."""
        return Ranges(self.low * other.low, self.mid * other.mid, self.high * other.high)

    def times(self, factor: F64) -> Ranges:
        return Ranges(self.low * factor, self.mid * factor, self.high * factor)

    def at_least(self, floor: F64) -> Ranges:
        return Ranges(*(np.maximum(c, floor) for c in (self.low, self.mid, self.high)))

    def where(self, these: Mask, other: Ranges) -> Ranges:
        """Those of ``other`` at ``these``."""
        pairs = ((self.low, other.low), (self.mid, other.mid), (self.high, other.high))
        return Ranges(*(np.where(these, theirs, own) for own, theirs in pairs))

    def take(self, rows: I64 | Mask) -> Ranges:
        return Ranges(self.low[rows], self.mid[rows], self.high[rows])

    def total(self) -> Range:
        """The sum, added up row by row."""
        return Range(*(in_turn(c) for c in (self.low, self.mid, self.high)))


def in_turn(column: F64) -> float:
    """The sum of a column in the order of its rows, which pairwise sums are not."""
    return float(np.cumsum(column)[-1]) if column.size else 0.0
