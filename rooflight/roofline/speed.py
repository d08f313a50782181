"""Speed of light of a step: how short its kernel time could be under the roofs (DEFINITIONS §16)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Instants that the partition gave to launches of one group.

    ``exclusive_ns`` of wall time, launches of median ``t_ns`` whose bound is ``bound_ns``;
    ``known`` is false for the regime ``unknown``, of which no excess may be claimed.
    """

    exclusive_ns: int
    t_ns: float
    bound_ns: float | None
    known: bool = True


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """``0 <= bound_ns <= attainable_ns <= kernel_ns``; the difference of the last two is the excess."""

    kernel_ns: int
    attainable_ns: int
    bound_ns: int


def attainable_fraction(t_ns: float, bound_ns: float | None) -> float | None:
    """min(1, t_bound / t): the share of its time that a launch needs; ``None`` when unknown."""
    if bound_ns is None or t_ns <= 0:
        return None
    return min(1.0, bound_ns / t_ns)


def speed_of_light(rows: Iterable[KernelTime]) -> SpeedOfLight:
    """Kernel time with every group at its bound; unknown groups keep their time and have no bound."""
    kernel = 0
    attainable = bound = 0.0
    for row in rows:
        share = attainable_fraction(row.t_ns, row.bound_ns) if row.known else None
        kernel += row.exclusive_ns
        attainable += row.exclusive_ns * (1.0 if share is None else share)
        bound += row.exclusive_ns * (share or 0.0)
    # Rounding each on its own keeps the order, since rounding is monotonic and kernel is whole.
    return SpeedOfLight(kernel, min(kernel, round(attainable)), min(kernel, round(bound)))
