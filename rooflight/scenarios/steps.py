"""How long a step takes when its kernels take other times: its exclusive parts, scaled (DEFINITIONS §16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rooflight.protocol import IDLE_PARTS, KERNEL_PARTS, PARTS, DeviceFigures, Parts
from rooflight.scenarios.kernels import SHORTEST_US
from rooflight.scenarios.model import Range, Scenario, exactly
from rooflight.scenarios.ranges import Ranges
from rooflight.scenarios.rows import Rows

_NONE = exactly(0.0)


def part_factors(rows: Rows, factor: Ranges, device: int, *, steps: bool) -> dict[str, Range]:
    """Per part of ``device`` the factor of its time: the mean over its rows, weighed with the time that is
    theirs alone, within the steps or in the whole recording."""
    own = rows.steps_own_us if steps else rows.own_us
    here = (rows.device == device) & (own >= SHORTEST_US) & (rows.part >= 0)
    part, weight = rows.part[here], own[here]
    total = np.bincount(part, weight, len(PARTS)).tolist()
    moved = [
        np.bincount(part, c[here] * weight, len(PARTS)).tolist()
        for c in (factor.low, factor.mid, factor.high)
    ]
    ranges = (Range(*sums) for sums in zip(*moved, strict=True))
    return {p: r.times(1 / all_) for p, r, all_ in zip(PARTS, ranges, total, strict=True) if all_}


def wall(
    parts: Parts,
    factors: Mapping[str, Range],
    scenario: Scenario,
    device: DeviceFigures | None,
) -> Range:
    """The wall time of ``parts``: kernels, communication and copies scaled, causes of idle time kept."""
    scaled = {p: _scaled(parts, p, factors) for p in PARTS}
    if scenario.input_ready:
        scaled["input"] = _NONE
    if scenario.overlapped:
        kernels = _sum([scaled[p] for p in KERNEL_PARTS])
        scaled["communication"] = _hidden(scaled["communication"], kernels, device)
    return _sum(list(scaled.values()))


def _scaled(parts: Parts, part: str, factors: Mapping[str, Range]) -> Range:
    recorded = exactly(float(getattr(parts, part)))
    return recorded if part in IDLE_PARTS else recorded.each(factors.get(part, exactly(1.0)))


def _hidden(exposed: Range, kernels: Range, device: DeviceFigures | None) -> Range:
    """What stays exposed when kernels hide as much as they are long and hide nothing else already."""
    hidden = max(0.0, device.comm_us - device.exposed_comm_us) if device else 0.0
    free = 1 - min(1.0, hidden / device.compute_us) if device and device.compute_us else 1.0
    room = kernels.times(free)

    def left(comm: float, room: float) -> float:
        return max(0.0, comm - room)

    low, high = left(exposed.low, room.high), left(exposed.high, room.low)
    return Range(low, min(high, max(low, left(exposed.mid, room.mid))), high)


def _sum(ranges: Sequence[Range]) -> Range:
    total = _NONE
    for r in ranges:
        total += r
    return total
