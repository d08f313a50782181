"""How long the rows of the kernel table take on another device (DEFINITIONS §19)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rooflight.attribution.intervals import F64
from rooflight.protocol import Ceiling, Roofs
from rooflight.regimes.kernels import TINY_NS
from rooflight.roofline.bounds import Work
from rooflight.roofline.columns import Works, least
from rooflight.scenarios.model import Scenario
from rooflight.scenarios.ranges import Ranges
from rooflight.scenarios.rows import LINK, MEMORY, PCIE, Rows
from rooflight.scenarios.start import NO_START, Start
from rooflight.scenarios.target import Retyped
from rooflight.trace.tables import I64, Mask
from rooflight.units import NS_PER_US

#: How far a kernel's share of its roof may differ between devices; that of one that no roof holds; and of
#: one whose cost is unknown.  Policy of §19, the same for all devices and families.
AT_ROOF, OFF_ROOF, UNKNOWN = 1.15, 1.5, 1.2
#: Recordings count nanoseconds: less is no time.
SHORTEST_US = 0.001
#: No device, and no part of a kernel's time, is so many times another.
MOST_APART = 1e6
_KNOWN = ("compute", "memory", "latency")


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Row-aligned with the table.  ``factor`` is of the recorded time, ``basis`` names the rule, ``known``
    says that it does not rest on an unknown; ``bound_us`` is the asked device's own bound of all launches,
    NaN where that is unknown."""

    factor: Ranges
    basis: NDArray[np.object_]
    known: Mask
    bound_us: F64

    @classmethod
    def together(cls, parts: Sequence[tuple[I64, Forecasts]]) -> Forecasts:
        """Those of several devices as one, each with the rows that are its."""
        order = np.argsort(np.concatenate([rows for rows, _ in parts]))
        factors = [(f.factor.low, f.factor.mid, f.factor.high) for _, f in parts]
        columns = [
            (*factor, f.basis, f.known, f.bound_us) for factor, (_, f) in zip(factors, parts, strict=True)
        ]
        *factor, basis, known, bound_us = (np.concatenate(c)[order] for c in zip(*columns, strict=True))
        return cls(Ranges(*factor), basis, known, bound_us)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of all launches in µs on the recorded and on the asked device, NaN where unknown."""

    recorded_us: F64
    asked_us: F64

    @property
    def ratio(self) -> F64:
        """Unknown too where a roof cannot be one: no device is a million times another."""
        ratio = self.asked_us / np.where(self.recorded_us > 0, self.recorded_us, np.nan)
        return np.where((ratio >= 1 / MOST_APART) & (ratio <= MOST_APART), ratio, np.nan)

    def floor(self, time_us: F64) -> F64:
        """The least share of its time that a kernel takes.  One that beat its practical roof where it was
        recorded may beat the other's by as much."""
        time_us = np.where(time_us < SHORTEST_US, np.nan, time_us)
        beaten = np.fmin(1.0, time_us / np.where(self.recorded_us > 0, self.recorded_us, np.nan))
        floor = self.asked_us / time_us * beaten
        return np.where(floor <= MOST_APART, floor, 0.0)


@dataclass(frozen=True, slots=True)
class Move:
    """From one device to another."""

    recorded: Roofs
    asked: Roofs
    types: Retyped
    start: Start = NO_START

    @property
    def same(self) -> bool:
        return self.recorded is self.asked

    def bounds(self, works: Works) -> Bounds:
        before, after = least(works, self.recorded), least(self._retyped(works), self.asked)
        # A roof that is missing on one side alone would make the other side's bound too low.
        lacks = before.lacks | after.lacks
        return Bounds(*(np.where(lacks, np.nan, side.ns / NS_PER_US) for side in (before, after)))

    def unchanged(self, works: Works) -> Mask:
        """The work that stays the same on the same device."""
        same = [self.same and self._of_kind(kind) == kind for kind in works.kinds]
        return np.array(same, bool)[works.kind]

    def _retyped(self, works: Works) -> Works:
        kinds = [self._of_kind(kind) for kind in works.kinds]
        per_byte = np.array([kind.bytes for kind in kinds], np.float64)[works.kind]
        return Works(works.flops, works.bytes * per_byte, works.link_bytes, works.kind, kinds)

    def _of_kind(self, kind: Work) -> Work:
        # A type that the recorded device has no roof for needs no other one there.
        return kind if self.same and self.types.dtype is None else self.types.work(kind)


def forecasts(rows: Rows, move: Move, scenario: Scenario) -> Forecasts:
    """The time of all launches of each row in ``scenario``, as a factor of what they took."""
    with np.errstate(over="ignore", invalid="ignore"):
        limits, judged = move.bounds(rows.works), rows.within(*_KNOWN)
        moved = _moved(rows, move, limits)
        floor = np.where(judged, limits.floor(rows.time_us), 0.0)
        factor = moved.factor.at_least(floor)
        if scenario.roofs_reached:
            factor = factor.where(floor > 0, Ranges.exactly(np.minimum(factor.low, floor)))
        if scenario.fused:
            factor = factor.each(_fused(rows))
        return Forecasts(factor, moved.basis, moved.known, np.where(judged, limits.asked_us, np.nan))


class _Told(NamedTuple):
    """What a rule says, of all rows alike or of each."""

    low: F64 | float
    mid: F64 | float
    high: F64 | float
    basis: str
    known: Mask | bool = True


def _moved(rows: Rows, move: Move, limits: Bounds) -> Forecasts:
    n = len(rows)
    factor = Ranges(*(np.ones(n) for _ in range(3)))
    basis, known = np.full(n, "", object), np.zeros(n, bool)
    columns = (factor.low, factor.mid, factor.high, basis, known)
    for these, told in _rules(rows, move, limits):
        for column, value in zip(columns, told, strict=True):
            np.copyto(column, value, where=these)
    return Forecasts(factor, basis, known, limits.asked_us)


def _rules(rows: Rows, move: Move, limits: Bounds) -> Iterator[tuple[Mask, _Told]]:
    """What holds of which rows; of several the last one counts."""
    recorded, asked, ratio = move.recorded, move.asked, limits.ratio
    comparable, copies = ~np.isnan(ratio), rows.within("copy")
    yield np.ones(len(rows), bool), _unknown(move)
    yield rows.within("latency") & comparable, _latency(rows, move, ratio)
    yield rows.within("compute", "memory") & comparable, _around(ratio, AT_ROOF, "roof")
    # Shorter than 5 µs a kernel is start and drain, which no roof tells.
    tiny = rows.within(*_KNOWN) & (rows.launch_us * NS_PER_US < TINY_NS)
    yield tiny, _around(move.start.moved(rows.launch_us, 1.0), OFF_ROOF, "tiny")
    yield copies & (rows.crosses == MEMORY), _crossing(recorded.memory, asked.memory, "memory", middle=False)
    yield copies & (rows.crosses == LINK), _crossing(recorded.link, asked.link, "link", middle=False)
    yield copies & (rows.crosses == PCIE), _crossing(recorded.pcie, asked.pcie, "pcie", middle=False)
    yield rows.within("communication"), _crossing(recorded.link, asked.link, "link", middle=True)
    same = (rows.time_us < SHORTEST_US) | move.unchanged(rows.works)
    yield same, _Told(1.0, 1.0, 1.0, "unchanged", ~rows.within("unknown"))


def _latency(rows: Rows, move: Move, ratio: F64) -> _Told:
    """Neither resource was busy.  Two accounts are open: its time is latency, and stays; or its SMs were as
    busy as they could be, and it scales with those that have a block.  The middle is halfway
    (geometrically).  Start and end have their own."""
    filled = fill(rows.blocks, move.recorded.sm_count) / fill(rows.blocks, move.asked.sm_count)
    return _around(move.start.moved(rows.launch_us, np.sqrt(ratio * filled)), OFF_ROOF, "latency")


def fill(blocks: F64, sm_count: int | None) -> F64:
    """The share of SMs that have a block, 1 where blocks or SMs are not known."""
    return np.fmin(1.0, blocks / (sm_count if sm_count and sm_count > 0 else np.nan))


def _unknown(move: Move) -> _Told:
    b = _inverse_ratio(move.recorded.memory, move.asked.memory)
    if b is None:
        return _around(1.0, OFF_ROOF, "unknown", known=False)
    return _Told(min(b, 1) / UNKNOWN, math.sqrt(b), max(b, 1) * UNKNOWN, "unknown", known=False)


def _crossing(recorded: Ceiling | None, asked: Ceiling | None, over: str, *, middle: bool) -> _Told:
    """Between no change and the ratio of what is crossed; in the ``middle``, or at the ratio."""
    n = _inverse_ratio(recorded, asked)
    if n is None:
        return _Told(1.0, 1.0, 1.0, f"no {over} data", known=False)
    return _Told(min(n, 1.0), math.sqrt(n) if middle else n, max(n, 1.0), over)


def _fused(rows: Rows) -> Ranges:
    """What is left of a kernel's bytes, and so of its time, when chains are one kernel: at best it neither
    reads nor writes what the chain hands on; at worst it still writes it, since somebody else reads it."""
    return Ranges(rows.unwritten, (rows.unwritten + rows.unread) / 2, rows.unread)


def _around(mid: F64 | float, spread: float, basis: str, *, known: bool = True) -> _Told:
    return _Told(mid / spread, mid, mid * spread, basis, known)


def _inverse_ratio(recorded: Ceiling | None, asked: Ceiling | None) -> float | None:
    """Time over time: the rates the other way round."""
    a, b = (c.practical if c else None for c in (recorded, asked))
    if not a or not b or not (0 < a < math.inf and 0 < b < math.inf):
        return None
    return a / b if b / MOST_APART <= a <= b * MOST_APART else None
