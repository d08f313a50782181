"""Speed of light of a step: how short its kernel time could be under the roofs (DEFINITIONS §16)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from rooflight.attribution.intervals import Clipper, Set
from rooflight.trace.tables import I64


class Limit(Struct, frozen=True, gc=False):
    """Launches of median ``t_ns`` whose bound is ``bound_ns``, ``None`` when unknown; ``known`` is false
    for the regime ``unknown``, of which no excess may be claimed."""

    t_ns: float
    bound_ns: float | None
    known: bool = True


class SpeedOfLight(Struct, frozen=True, gc=False):
    """``0 <= bound_ns <= attainable_ns <= kernel_ns``; the difference of the last two is the excess."""

    kernel_ns: int
    attainable_ns: int
    bound_ns: int


class KernelTime:
    """Disjoint, sorted pieces of time, each of which one kernel has, at any windows."""

    def __init__(self, pieces: Set, limit: I64, limits: Sequence[Limit]) -> None:
        """``limit`` is the place in ``limits`` of each piece's kernel."""
        shares = [attainable_fraction(one) for one in limits]
        attainable = np.array([1.0 if s is None else s for s in shares])
        bound = np.array([s or 0.0 for s in shares])
        self._time = Clipper(pieces)
        self._attainable = Clipper(pieces, attainable[limit])
        self._bound = Clipper(pieces, bound[limit])

    def within(self, start: I64, end: I64) -> list[SpeedOfLight]:
        """The kernel time of each window [start, end) with every kernel at its bound; unknown ones keep
        their time and have no bound."""
        columns = (c.within(start, end).tolist() for c in (self._time, self._attainable, self._bound))
        return [_ordered(*row) for row in zip(*columns, strict=True)]


def _ordered(kernel: int, attainable: float, bound: float) -> SpeedOfLight:
    best = min(kernel, round(attainable))
    return SpeedOfLight(kernel, best, min(best, round(bound)))


def attainable_fraction(limit: Limit) -> float | None:
    """min(1, t_bound / t): the share of its time that a launch needs; ``None`` when unknown."""
    if not limit.known or limit.bound_ns is None or limit.t_ns <= 0:
        return None
    return min(1.0, limit.bound_ns / limit.t_ns)
