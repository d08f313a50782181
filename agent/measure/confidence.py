"""How sure a calibration is: a word, and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.measure.timing import LEAST_SAMPLES, QUIET, Timing
from rooflight.calibration import Clock

HIGH, MEDIUM, LOW = "high", "medium", "low"
_ORDER = (HIGH, MEDIUM, LOW)
#: Interquartile range over median up to which a figure is sure, and up to which it is of use.
STEADY, SCATTERED = 0.05, 0.20
#: No ceiling: scatter of the host's microseconds says nothing against the others.
LATENCY = "launch"
#: Fewer quiet samples than this say little of their scatter.
ENOUGH_SAMPLES = 10
#: A clock that was mostly further than this below its highest, and no limit that explains it.
CLOCK_DROP = 0.10


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a calibration is less than sure, and how sure it is at the most."""

    at_most: str
    reason: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was seen beside the samples: others' share of the CPUs (0 to 1, ``None`` unknown), clocks, the
    limits that a busy device is expected to meet, as its power cap, and slowdowns that it should not."""

    others: float | None
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    limits: Sequence[str] = ()
    slowdowns: Sequence[str] = ()


def confidence(timings: Mapping[str, Timing], around: Circumstances) -> tuple[str, list[str]]:
    """The worst of all doubts, and their reasons; without a doubt what the figures rest on."""
    doubts = [doubt for name, timing in timings.items() for doubt in _of_figure(name, timing)]
    doubts += [] if around.limits else _of_clocks(around.clocks)
    doubts += [Doubt(LOW, f"the device slowed down: {why}") for why in around.slowdowns]
    if around.others is not None and around.others > QUIET:
        doubts.append(Doubt(MEDIUM, f"other programs used {100 * around.others:.0f} % of the CPUs"))
    word = max((d.at_most for d in doubts), key=_ORDER.index, default=HIGH)
    return word, [d.reason for d in doubts] or [_ground(timings)]


def _of_figure(name: str, timing: Timing) -> Iterable[Doubt]:
    if timing.samples < LEAST_SAMPLES:
        by = "other programs left" if timing.disturbed else "there was time for"
        yield Doubt(LOW, f"{name}: {by} {timing.samples} samples")
        return
    if timing.samples < ENOUGH_SAMPLES:
        yield Doubt(MEDIUM, f"{name}: no more than {timing.samples} samples")
    if timing.spread > STEADY:
        at_most = LOW if timing.spread > SCATTERED and name != LATENCY else MEDIUM
        yield Doubt(at_most, f"{name}: samples scatter by {100 * timing.spread:.0f} %")


def _of_clocks(clocks: Mapping[str, Clock]) -> Iterable[Doubt]:
    for name, clock in clocks.items():
        if clock.median < (1 - CLOCK_DROP) * clock.max:
            yield Doubt(MEDIUM, f"the {name} clock was at {clock.median:.0f} of {clock.max:.0f} MHz")


def _ground(timings: Mapping[str, Timing]) -> str:
    least = min((timing.samples for timing in timings.values()), default=0)
    widest = max((timing.spread for timing in timings.values()), default=0.0)
    scatter = f"scattering by {100 * widest:.1f} % at most"
    return f"{least} or more undisturbed samples of each figure, {scatter}"
