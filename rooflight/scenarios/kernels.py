"""How long a row of the kernel table takes on another device (DEFINITIONS §19)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from rooflight.protocol import Ceiling, Kernel, Roofs
from rooflight.regimes.kernels import TINY_NS
from rooflight.roofline.bounds import Ceilings, Work, lacks_roof
from rooflight.scenarios.model import Range, Scenario, exactly
from rooflight.scenarios.start import NO_START, Start
from rooflight.scenarios.target import Retyped
from rooflight.units import NS_PER_US

#: How far a kernel's share of its roof may differ between devices; that of one that no roof holds; and of
#: one whose cost is unknown.  Policy of §19, the same for all devices and families.
AT_ROOF, OFF_ROOF, UNKNOWN = 1.15, 1.5, 1.2
#: Recordings count nanoseconds: less is no time.
SHORTEST_US = 0.001
#: No device, and no part of a kernel's time, is so many times another.
MOST_APART = 1e6
_KNOWN = ("compute", "memory", "latency")
_FUSED_FAMILY = "elementwise"


class Forecast(Struct, frozen=True, gc=False):
    """``factor`` is of the recorded time; ``bound_us`` the asked device's own bound of all launches."""

    factor: Range
    basis: str
    known: bool
    bound_us: float | None = None


class Bounds(Struct, frozen=True, gc=False):
    """Bounds of all launches in µs on the recorded and on the asked device; ``None`` is unknown."""

    recorded_us: float | None
    asked_us: float | None

    @property
    def ratio(self) -> float | None:
        """``None`` too where a roof cannot be one: no device is a million times another."""
        if not self.recorded_us or not self.asked_us:
            return None
        ratio = self.asked_us / self.recorded_us
        return ratio if 1 / MOST_APART <= ratio <= MOST_APART else None

    def floor(self, time_us: float) -> float:
        """The least share of its time that a kernel takes.  One that beat its practical roof where it was
        recorded may beat the other's by as much."""
        if self.asked_us is None or time_us < SHORTEST_US:
            return 0.0
        beaten = min(1.0, time_us / self.recorded_us) if self.recorded_us else 1.0
        floor = self.asked_us / time_us * beaten
        return floor if floor <= MOST_APART else 0.0


@dataclass(frozen=True)
class Move:
    """From one device to another."""

    recorded: Roofs
    asked: Roofs
    types: Retyped
    start: Start = NO_START

    @property
    def same(self) -> bool:
        return self.recorded is self.asked

    @cached_property
    def _before(self) -> Ceilings:
        return Ceilings(self.recorded)

    @cached_property
    def _after(self) -> Ceilings:
        return Ceilings(self.asked)

    def bounds(self, k: Kernel) -> Bounds:
        work = work_of(k)
        retyped = self._retyped(k, work)
        before, after = self._before.bound(work), self._after.bound(retyped)
        # A roof that is missing on one side alone would make the other side's bound too low.
        if lacks_roof(work, before) or lacks_roof(retyped, after):
            return Bounds(None, None)
        return Bounds(_us(before.bound_ns), _us(after.bound_ns))

    def unchanged(self, k: Kernel) -> bool:
        return self.same and self._retyped(k, work_of(k)) == work_of(k)

    def _retyped(self, k: Kernel, work: Work) -> Work:
        # A type that the recorded device has no roof for needs no other one there.
        return work if self.same and self.types.dtype is None else self.types.work(k, work)


def forecast(k: Kernel, move: Move, scenario: Scenario) -> Forecast:
    """The time of all launches of ``k`` in ``scenario``, as a factor of what they took."""
    limits = move.bounds(k)
    moved = _moved(k, move, limits)
    floor = limits.floor(k.time_us) if k.regime in _KNOWN else 0.0
    factor = moved.factor.at_least(floor)
    if scenario.roofs_reached and k.regime in _KNOWN and floor:
        factor = exactly(min(factor.low, floor))
    if scenario.fused:
        factor = factor.each(_fused(k))
    known_bound = limits.asked_us if k.regime in _KNOWN else None
    return Forecast(factor, moved.basis, moved.known, known_bound)


def work_of(k: Kernel) -> Work:
    """The work of all launches."""
    over_pcie = k.family == "memcpy" and "PtoP" not in k.name
    return Work(k.flops, k.bytes, k.link_bytes, k.dtype, k.matrix, over_pcie=over_pcie)


def _moved(k: Kernel, move: Move, limits: Bounds) -> Forecast:
    if k.time_us < SHORTEST_US or move.unchanged(k):
        return Forecast(exactly(1.0), "unchanged", k.regime != "unknown")
    if k.regime == "communication":
        return _crossing(move.recorded.link, move.asked.link, "link", middle=True)
    if k.regime == "copy":
        return _copied(k, move)
    if k.regime in _KNOWN and _tiny(k):
        return Forecast(_around(move.start.moved(_launch_us(k), 1.0), OFF_ROOF), "tiny", known=True)
    if k.regime in ("compute", "memory") and limits.ratio is not None:
        return Forecast(_around(limits.ratio, AT_ROOF), "roof", known=True)
    if k.regime == "latency" and limits.ratio is not None:
        return _latency(k, move, limits.ratio)
    return _unknown(move)


def _latency(k: Kernel, move: Move, ratio: float) -> Forecast:
    """Neither resource was busy.  Two accounts are open: its time is latency, and stays; or its SMs were as
    busy as they could be, and it scales with those that have a block.  The middle is halfway
    (geometrically).  Start and end have their own."""
    filled = fill(k.blocks, move.recorded.sm_count) / fill(k.blocks, move.asked.sm_count)
    middle = move.start.moved(_launch_us(k), math.sqrt(ratio * filled))
    return Forecast(_around(middle, OFF_ROOF), "latency", known=True)


def _tiny(k: Kernel) -> bool:
    """Shorter than 5 µs a kernel is start and drain, which no roof tells."""
    return _launch_us(k) * NS_PER_US < TINY_NS


def _launch_us(k: Kernel) -> float:
    """The typical launch, in µs."""
    return k.p50_us or k.time_us / max(1, k.count)


def fill(blocks: int | None, sm_count: int | None) -> float:
    """The share of SMs that have a block, 1 where blocks or SMs are not known."""
    return min(1.0, blocks / sm_count) if blocks and sm_count and sm_count > 0 else 1.0


def _unknown(move: Move) -> Forecast:
    b = _inverse_ratio(move.recorded.memory, move.asked.memory)
    if b is None:
        return Forecast(_around(1.0, OFF_ROOF), "unknown", known=False)
    return Forecast(Range(min(b, 1) / UNKNOWN, math.sqrt(b), max(b, 1) * UNKNOWN), "unknown", known=False)


def _copied(k: Kernel, move: Move) -> Forecast:
    on_device = k.family == "memset" or k.kind == "memset" or "DtoD" in k.name
    if on_device:
        return _crossing(move.recorded.memory, move.asked.memory, "memory", middle=False)
    if "PtoP" in k.name:
        return _crossing(move.recorded.link, move.asked.link, "link", middle=False)
    return _crossing(move.recorded.pcie, move.asked.pcie, "pcie", middle=False)


def _crossing(recorded: Ceiling | None, asked: Ceiling | None, over: str, *, middle: bool) -> Forecast:
    """Between no change and the ratio of what is crossed; in the ``middle``, or at the ratio."""
    n = _inverse_ratio(recorded, asked)
    if n is None:
        return Forecast(exactly(1.0), f"no {over} data", known=False)
    return Forecast(Range(min(n, 1.0), math.sqrt(n) if middle else n, max(n, 1.0)), over, known=True)


def _fused(k: Kernel) -> Range:
    """What is left of a kernel's bytes, and so of its time, when chains are one kernel: at best it neither
    reads nor writes what the chain hands on; at worst it still writes it, since somebody else reads it."""
    if k.family != _FUSED_FAMILY or not k.bytes:
        return exactly(1.0)
    both = max(0.0, 1 - (k.chained_in_bytes + k.chained_out_bytes) / k.bytes)
    reads = max(0.0, 1 - k.chained_in_bytes / k.bytes)
    return Range(both, (both + reads) / 2, reads)


def _around(mid: float, spread: float) -> Range:
    return Range(mid / spread, mid, mid * spread)


def _inverse_ratio(recorded: Ceiling | None, asked: Ceiling | None) -> float | None:
    """Time over time: the rates the other way round."""
    a, b = (c.practical if c else None for c in (recorded, asked))
    if not a or not b or not (0 < a < math.inf and 0 < b < math.inf):
        return None
    return a / b if b / MOST_APART <= a <= b * MOST_APART else None


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_US
