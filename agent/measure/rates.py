"""What a measurement gives: a rate, and what it was measured on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.measure.timing import Timing


@dataclass(frozen=True, slots=True)
class Rate:
    """``per_s`` in FLOP/s or B/s, ``what`` the shape or pattern in words, ``timing`` what it rests on."""

    per_s: float
    what: str
    timing: Timing


def rate(amount: float, what: str, timing: Timing) -> Rate:
    """``amount`` FLOP or bytes in the time of one call."""
    return Rate(amount / timing.seconds, f"{what}, {timing.estimator}", timing)


def best(rates: Iterable[Rate]) -> Rate | None:
    """The highest rate, ``None`` of none: a ceiling is what the device reached, not its average."""
    return max(rates, key=lambda rate: rate.per_s, default=None)
