"""Rows of the steps: their figures, parts, regime and speed of light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import PARTS, CpuStep, Parts, Percentiles, Roofs, Step
from rooflight.regimes.kernels import Verdict
from rooflight.regimes.partition import Partition
from rooflight.regimes.steps import StepVerdict
from rooflight.results.rows import percentile, rounded
from rooflight.results.utilisation import Utilisation, utilisation
from rooflight.results.work import WorkDone
from rooflight.roofline.groups import Groups
from rooflight.roofline.speed import KernelTime, Limit, SpeedOfLight
from rooflight.trace.tables import I8, I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import NS_PER_US, us

#: Fewer steps than this have no tail percentiles (DEFINITIONS §16).
MIN_FOR_TAILS = 5


def parts_us(parts: Mapping[str, int]) -> Parts:
    """The parts in µs; each is exact, so their sum is."""
    return Parts(**{name: us(ns) for name, ns in parts.items()})


def percentiles_us(steps: Sequence[Step | CpuStep]) -> dict[str, Percentiles]:
    """Of ``step_time`` and of every part that some step has, over the steps, in µs."""
    known = [s for s in steps if s.parts_us is not None]
    columns = {"step_time": [s.step_time_us for s in known]}
    columns |= {p: [float(getattr(s.parts_us, p)) for s in known] for p in PARTS}
    return {name: _percentiles(values) for name, values in columns.items() if any(values)}


def _percentiles(values: Sequence[float]) -> Percentiles:
    ordered = sorted(round(v * NS_PER_US) for v in values)
    p50, p95, p99 = (us(round(percentile(ordered, p))) for p in (50, 95, 99))
    return Percentiles(p50, p95, p99) if len(values) >= MIN_FOR_TAILS else Percentiles(p50)


@dataclass(frozen=True, slots=True)
class StepFigures:
    """A step before its verdict: parts per device index, in ns."""

    span: StepSpan
    parts: dict[int, dict[str, int]]
    busy_ns: int
    launched_ns: int
    touched: bool
    light: SpeedOfLight
    use: Utilisation
    work: WorkDone


def step_figures(
    timeline: Timeline,
    links: Links,
    phase: I8,
    steps: Sequence[StepSpan],
    partitions: Mapping[int, Partition],
    headline: int,
    groups: Groups,
    regimes: Sequence[Verdict],
    roofs: Roofs,
    work: Sequence[WorkDone],
) -> list[StepFigures]:
    """The figures of every step; those of the whole are of the ``headline`` device.  ``phase`` is
    that of each GPU event, ``work`` is row-aligned with the steps."""
    start, end = bounds(steps)
    launched = _Launched(timeline, links, headline)
    parts = {d: p.parts(start, end) for d, p in partitions.items()}
    busy = {d: p.busy.within(start, end) for d, p in partitions.items()}
    touched = launched.any(start, end) | (sum(busy.values()) > 0)
    used = utilisation(timeline, links, phase, groups, headline, roofs, start, end)
    columns = (
        busy[headline].tolist(),
        launched.within(start, end).tolist(),
        touched.tolist(),
        _kernel_time(partitions[headline], groups, regimes).within(start, end),
    )
    return [
        StepFigures(s, {d: p[i] for d, p in parts.items()}, *row)
        for i, (s, *row) in enumerate(zip(steps, *columns, used, work, strict=True))
    ]


def bounds(steps: Sequence[StepSpan]) -> tuple[I64, I64]:
    """Start and end of each step, in ns."""
    return np.array([s.start for s in steps], np.int64), np.array([s.end for s in steps], np.int64)


def _kernel_time(p: Partition, groups: Groups, regimes: Sequence[Verdict]) -> KernelTime:
    limits = [
        Limit(g.t_ns, g.bound.bound_ns, v.regime != "unknown")
        for g, v in zip(groups.rows, regimes, strict=True)
    ]
    k = p.kernels
    return KernelTime(np.column_stack((k.start, k.end)), groups.of_event[k.owner].astype(np.int64), limits)


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

    def within(self, start: I64, end: I64) -> I64:
        """Of each window [start, end), in ns."""
        before: I64 = self._before[np.searchsorted(self._at, end)]
        return before - self._before[np.searchsorted(self._at, start)]

    def any(self, start: I64, end: I64) -> Mask:
        """Whether anything at all was launched in each window [start, end)."""
        found: Mask = np.searchsorted(self._all, end) > np.searchsorted(self._all, start)
        return found


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
        mfu=_percent(f.use.mfu),
        hfu=_percent(f.use.hfu),
        start_us=us(f.span.start),
        work=list(f.work.known),
        work_of_us=us(f.work.time_ns),
    )


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else rounded(100 * fraction)
