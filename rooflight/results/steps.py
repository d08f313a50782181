"""Rows of the steps: their figures, parts, regime and speed of light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import Parts, Step
from rooflight.regimes.kernels import Verdict
from rooflight.regimes.partition import Partition
from rooflight.regimes.steps import StepVerdict
from rooflight.roofline.groups import Groups
from rooflight.roofline.speed import KernelTime, SpeedOfLight, speed_of_light
from rooflight.trace.tables import GpuKind
from rooflight.trace.timeline import Timeline
from rooflight.units import us


def parts_us(parts: Mapping[str, int]) -> Parts:
    """The parts in µs; each is exact, so their sum is."""
    return Parts(**{name: us(ns) for name, ns in parts.items()})


@dataclass(frozen=True, slots=True)
class StepFigures:
    """A step before its verdict: parts per device index, in ns."""

    span: StepSpan
    parts: dict[int, dict[str, int]]
    busy_ns: int
    launched_ns: int
    touched: bool
    light: SpeedOfLight


def step_figures(
    timeline: Timeline,
    links: Links,
    steps: Sequence[StepSpan],
    partitions: Mapping[int, Partition],
    headline: int,
    groups: Groups,
    regimes: Sequence[Verdict],
) -> list[StepFigures]:
    """The figures of every step; those of the whole are of the ``headline`` device."""
    launched = _Launched(timeline, links, headline)
    figures = []
    for s in steps:
        own = partitions[headline]
        figures.append(
            StepFigures(
                span=s,
                parts={d: p.parts(s.start, s.end) for d, p in partitions.items()},
                busy_ns=own.busy.within(s.start, s.end),
                launched_ns=launched.within(s.start, s.end),
                touched=launched.any(s.start, s.end)
                or any(p.busy.within(s.start, s.end) for p in partitions.values()),
                light=light(own, s.start, s.end, groups, regimes),
            )
        )
    return figures


def light(p: Partition, start: int, end: int, groups: Groups, regimes: Sequence[Verdict]) -> SpeedOfLight:
    """Speed of light of the kernel time within [start, end)."""
    rows, length = p.kernel_time(start, end)
    # Over the groups of this window, not over all: there may be as many groups as there are steps.
    present, place = np.unique(groups.of_event[rows], return_inverse=True)
    exclusive = np.bincount(place, weights=length)
    return speed_of_light(
        KernelTime(
            round(ns), groups.rows[i].t_ns, groups.rows[i].bound.bound_ns, regimes[i].regime != "unknown"
        )
        for i, ns in zip(present.tolist(), exclusive.tolist(), strict=True)
        if ns
    )


class _Launched:
    """Kernel time by the instant of its launch."""

    def __init__(self, timeline: Timeline, links: Links, headline: int) -> None:
        gpu = timeline.gpu
        rows = timeline.valid_gpu
        rows = rows[links.launch[rows] >= 0]
        at = timeline.host.start[links.launch[rows]]
        self._all = np.sort(at)
        mine = (gpu.kind[rows] == GpuKind.KERNEL) & (gpu.device[rows] == headline)
        order = np.argsort(at[mine], kind="stable")
        self._at = at[mine][order]
        lengths = (gpu.end[rows] - gpu.start[rows])[mine][order]
        self._before = np.concatenate(([0], np.cumsum(lengths)))

    def within(self, start: int, end: int) -> int:
        low, high = np.searchsorted(self._at, (start, end))
        return int(self._before[high] - self._before[low])

    def any(self, start: int, end: int) -> bool:
        low, high = np.searchsorted(self._all, (start, end))
        return bool(high > low)


def step_row(timeline: Timeline, f: StepFigures, verdict: StepVerdict, headline: int) -> Step:
    """A step as the protocol's row; ``start_us`` is relative to the recording's own clock."""
    keys = timeline.device_keys
    return Step(
        n=f.span.n,
        step_time_us=us(f.span.end - f.span.start),
        gpu_busy_in_window_us=us(f.busy_ns),
        gpu_launched_us=us(f.launched_ns),
        device=keys[headline],
        parts_us=parts_us(f.parts[headline]),
        devices={keys[d]: parts_us(p) for d, p in f.parts.items() if d != headline},
        regime=verdict.regime,
        regime_confidence=verdict.confidence,
        regime_reason=verdict.reason,
        attainable_us=us(f.light.attainable_ns),
        bound_us=us(f.light.bound_ns),
        start_us=us(f.span.start),
    )
