"""What a measurement gives: a rate, and what it was measured on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """``per_s`` in FLOP/s or B/s, ``spread`` a fraction, ``what`` the shape or pattern in words."""

    per_s: float
    spread: float
    what: str


def best(rates: Iterable[Rate]) -> Rate | None:
    """The highest rate, ``None`` of none: a ceiling is what the device reached, not its average."""
    return max(rates, key=lambda rate: rate.per_s, default=None)
