"""Many exact fractions at once, as whole numbers of one unit: these are added and compared faster."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import lcm


def in_one_unit(values: Collection[Fraction]) -> tuple[list[int], int]:
    """The values as whole numbers of one part of 1, and which part that is."""
    unit = lcm(*{v.denominator for v in values})
    return [v.numerator * (unit // v.denominator) for v in values], unit


def total(values: Collection[Fraction]) -> Fraction:
    """Their sum."""
    if len(values) == 1:
        return next(iter(values))
    whole, unit = in_one_unit(values)
    return Fraction(sum(whole), unit)
