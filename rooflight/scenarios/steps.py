"""How long a step takes when its kernels take other times: its exclusive parts, scaled (DEFINITIONS §16)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rooflight.protocol import IDLE_PARTS, KERNEL_PARTS, PARTS, DeviceFigures, Kernel, Parts
from rooflight.scenarios.kernels import SHORTEST_US, Forecast
from rooflight.scenarios.model import Range, Scenario, exactly

_NONE = exactly(0.0)


def part_factors(
    kernels: Sequence[Kernel], forecasts: Sequence[Forecast], device: str, *, steps: bool
) -> dict[str, Range]:
    """Per part of ``device`` the factor of its time: the mean over its rows, weighed with the time that is
    theirs alone, within the steps or in the whole recording."""
    weight: dict[str, float] = defaultdict(float)
    moved: dict[str, Range] = defaultdict(lambda: _NONE)
    for k, f in zip(kernels, forecasts, strict=True):
        if k.device == device and (own := _own(k, steps=steps)) >= SHORTEST_US:
            weight[k.regime] += own
            moved[k.regime] += f.factor.times(own)
    return {part: moved[part].times(1 / total) for part, total in weight.items()}


def _own(k: Kernel, *, steps: bool) -> float:
    own = k.steps_exclusive_us if steps else k.exclusive_us
    return k.time_us if own is None else own


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
