"""What a device drew over the steps of a run (DEFINITIONS §11), from looks at it that an agent took.

Between two looks the energy is the difference of the driver's counter, else the trapezoid of the power; it
is spread evenly over the time between them.  The looks are taken several times a second, the steps' own
times come from the recording: both are the host's clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rooflight.hardware.catalogue import by_id
from rooflight.hardware.roofs import observe
from rooflight.protocol import Flag, Rank, Step, StepEnergy
from rooflight.units import NS_PER_S, NS_PER_US

#: Fewer within the steps say too little of where these begin and end.
FEWEST_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Look:
    """A device at ``t``, in seconds since the epoch; ``working``: it did something, as far as it tells."""

    t: float
    counter_j: float | None = None
    power_w: float | None = None
    sm_mhz: float | None = None
    working: bool = True


def join(rank: Rank, device: str, uuid: str, looks: Sequence[Look]) -> None:
    """Put what the looks at the device with ``uuid``, which the recording calls ``device``, say of the
    steps into ``rank``: its energy, and its roofs at the clock that was seen."""
    rank.energy = step_energy(rank, device, uuid, looks)
    roofs = rank.roofs.get(device)
    gpu = None if roofs is None else by_id().get(roofs.gpu_id or "")
    if rank.energy is not None and roofs is not None and gpu is not None:
        rank.energy.boost_mhz = gpu.boost_mhz
        observe(roofs, gpu, rank.energy.sm_clock_mhz)


def energy_in_words(e: StepEnergy) -> str:
    """One line: energy of a step, power, clock; or why they are unknown."""
    stated = "" if e.boost_mhz is None else f" of {e.boost_mhz:.0f}"
    clock = "" if e.sm_clock_mhz is None else f", SM clock {e.sm_clock_mhz:.0f}{stated} MHz"
    if e.per_step_j is None:
        return f"unknown: {e.reason}{clock}"
    estimated = any(flag.code == "energy_estimated" for flag in e.flags)
    power = "" if e.power_w is None else f" at {e.power_w:.0f} W"
    return f"{e.per_step_j:.3g} J per step{power}{' (from the power)' if estimated else ''}{clock}"


def step_energy(rank: Rank, device: str, uuid: str, looks: Sequence[Look]) -> StepEnergy | None:
    """``None`` without marked steps, or when the recording does not tell when they were."""
    spans = list(_spans(rank))
    if not spans:
        return None
    looks = sorted(looks, key=lambda look: look.t)
    first, last = spans[0][0], spans[-1][1]
    within = [look for look in looks if first <= look.t <= last]
    wall_s = sum(end - start for start, end in spans)
    found = StepEnergy(device, uuid, len(rank.steps), round(wall_s * 1e6, 3), len(within))
    found.sm_clock_mhz = _clock(within)
    if len(within) < FEWEST_LOOKS:
        found.reason = f"the steps lasted {last - first:.3g} s: {len(within)} looks fell within"
    elif looks[0].t > first or looks[-1].t < last:
        found.reason = "the device was not looked at from before the steps until after them"
    else:
        _fill(found, looks, spans, wall_s)
    return found


def _fill(found: StepEnergy, looks: Sequence[Look], spans: list[tuple[float, float]], wall_s: float) -> None:
    between = [_joules(a, b) for a, b in pairwise(looks)]
    times = [look.t for look in looks]
    used = range(bisect_right(times, spans[0][0]) - 1, bisect_left(times, spans[-1][1]))
    gaps = sum(between[i] is None for i in used)
    if gaps:
        found.flags.append(Flag("energy_gap", gaps, "intervals without an energy"))
        found.reason = "the counter went backwards, or neither it nor the power was told"
        return
    if any(_is_estimate(looks[i], looks[i + 1]) for i in used):
        found.flags.append(Flag("energy_estimated", None, "trapezoid of the power samples"))
    drawn = [0.0]
    for joules in between:
        drawn.append(drawn[-1] + (joules or 0.0))
    found.energy_j = sum(_until(times, drawn, end) - _until(times, drawn, start) for start, end in spans)
    found.per_step_j = found.energy_j / found.steps
    found.power_w = found.energy_j / wall_s if wall_s else None


def _spans(rank: Rank) -> Iterator[tuple[float, float]]:
    """The steps on the wall clock in seconds, where they overlap as one."""
    if rank.clock_base_ns is None:
        return
    base = int(rank.clock_base_ns)
    merged: tuple[float, float] | None = None
    for start, end in sorted(_span(base, s) for s in rank.steps if s.start_us is not None):
        if merged is None or start > merged[1]:
            if merged is not None:
                yield merged
            merged = start, end
        else:
            merged = merged[0], max(merged[1], end)
    if merged is not None:
        yield merged


def _span(base: int, step: Step) -> tuple[float, float]:
    start = (base + (step.start_us or 0.0) * NS_PER_US) / NS_PER_S
    return start, start + step.step_time_us * NS_PER_US / NS_PER_S


def _joules(a: Look, b: Look) -> float | None:
    if a.counter_j is not None and b.counter_j is not None:
        used = b.counter_j - a.counter_j
        return used if used >= 0 else None
    if a.power_w is None or b.power_w is None:
        return None
    return (a.power_w + b.power_w) / 2 * (b.t - a.t)


def _is_estimate(a: Look, b: Look) -> bool:
    return a.counter_j is None or b.counter_j is None


def _until(times: list[float], drawn: list[float], t: float) -> float:
    """What was drawn from the first look until ``t``, which lies between the first and the last."""
    i = min(max(bisect_right(times, t) - 1, 0), len(times) - 2)
    length = times[i + 1] - times[i]
    share = (t - times[i]) / length if length else 0.0
    return drawn[i] + share * (drawn[i + 1] - drawn[i])


def _clock(looks: Sequence[Look]) -> float | None:
    seen = [look.sm_mhz for look in looks if look.working and look.sm_mhz is not None]
    return sum(seen) / len(seen) if seen else None
