"""The host CPU as the device of a recording that has no GPU work (DEFINITIONS §20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.idle import HostActivity
from rooflight.attribution.intervals import Clipper, cut, difference, measure, union, union_of
from rooflight.attribution.selftime import SelfTime, self_times
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import KERNEL_PARTS, PARTS, Cpu, CpuStep, Roofs
from rooflight.regimes.ownership import Owned, summed_by
from rooflight.regimes.steps import StepVerdict, run_regime, step_regime, summed
from rooflight.results.cpu_ops import CpuOps, cpu_ops, op_rows
from rooflight.results.exclusive import Depth, Exclusive
from rooflight.results.steps import bounds, parts_us
from rooflight.roofline.bounds import lacks_roof
from rooflight.roofline.speed import KernelTime, Limit, SpeedOfLight
from rooflight.trace.tables import I64, HostKind, distinct, rows_by
from rooflight.trace.timeline import Timeline
from rooflight.units import us


@dataclass(frozen=True, slots=True)
class CpuRecording:
    """The ops of a recording on the roofs of its CPU, before any verdict on its steps."""

    timeline: Timeline
    roofs: Roofs
    selfs: SelfTime
    ops: CpuOps

    @property
    def peak_known(self) -> bool:
        """Whether every known work that a verdict waits for has a roof."""
        return not any(lacks_roof(o.work, o.bound) for o in self.ops.rows)


def cpu_recording(timeline: Timeline, roofs: Roofs) -> CpuRecording | None:
    """Leaf ops on the host CPU's measured roof; ``None`` when the recording has no host rows either."""
    if not len(timeline.host):
        return None
    selfs = self_times(timeline)
    return CpuRecording(timeline, roofs, selfs, cpu_ops(timeline, selfs, roofs))


def cpu_device(
    recording: CpuRecording, steps: Sequence[StepSpan], *, grade: str, doubt: float, withheld: str | None
) -> Cpu:
    """The CPU's figures: its steps, or without steps the whole recording.

    ``doubt`` is the share (0 to 1) of self time whose cost is unknown or inferred.
    """
    spans = list(steps) or [_whole(recording.timeline)]
    cuts = {t: _Cut(recording, t) for t in sorted({s.thread for s in spans})}
    parts, lights = _at_steps(cuts, spans)
    judged = {"grade": grade, "unknown_inferred_frac": doubt, "withheld": withheld}
    rows = [
        _row(s, p, step_regime(p, **judged), light)  # type: ignore[arg-type]
        for s, p, light in zip(spans, parts, lights, strict=True)
    ]
    whole = run_regime(parts, **judged)  # type: ignore[arg-type]
    return Cpu(
        roof=recording.roofs,
        name=recording.roofs.name,
        steps=rows if steps else [],
        ops=op_rows(recording.ops.rows, _exclusive(cuts, spans, len(recording.ops.rows)), steps=bool(steps)),
        parts_us=parts_us(summed(parts)),
        wall_us=us(sum(s.end - s.start for s in spans)),
        threads_busy_us=_other_threads(recording.timeline, set(cuts)),
        regime=whole.regime,
        regime_confidence=whole.confidence,
        regime_reason=whole.reason,
    )


def _at_steps(
    cuts: Mapping[int, _Cut], spans: Sequence[StepSpan]
) -> tuple[list[dict[str, int]], list[SpeedOfLight]]:
    """Parts and speed of light of each step on its own thread."""
    found: dict[int, tuple[dict[str, int], SpeedOfLight]] = {}
    for thread, at in rows_by(np.array([s.thread for s in spans], np.int64)):
        start, end = bounds([spans[i] for i in at.tolist()])
        one = cuts[thread]
        found |= zip(at.tolist(), zip(one.parts(start, end), one.light(start, end), strict=True), strict=True)
    parts, lights = zip(*(found[i] for i in range(len(spans))), strict=True)
    return list(parts), list(lights)


def _exclusive(cuts: Mapping[int, _Cut], spans: Sequence[StepSpan], n: int) -> Exclusive:
    """What each of ``n`` groups of ops has of the spans, each on its own thread."""
    time, count = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for thread, one in cuts.items():
        depth = Depth(*bounds([s for s in spans if s.thread == thread]))
        owners = one.owners
        time += summed_by(owners.owner, depth.within(owners.start, owners.end), n)
        count += one.calls(n, depth)
    return Exclusive(time, time, count)


class _Cut:
    """One thread's time: input, sync, self time of ops by regime, else host."""

    def __init__(self, recording: CpuRecording, thread: int) -> None:
        selfs, ops = recording.selfs, recording.ops
        mine = np.flatnonzero(selfs.thread == thread)
        mine = mine[np.argsort(selfs.start[mine])]
        waits = HostActivity(recording.timeline).of(thread)
        working = difference(union(selfs.start[mine], selfs.end[mine]), union_of(waits.input, waits.sync))
        pieces, at = cut(working, selfs.start[mine], selfs.end[mine])
        group = np.array([ops.of_call[row] for row in selfs.op[mine].tolist()], np.int64)[at]
        part = np.array([PARTS.index(op.verdict.regime) for op in ops.rows] or [0], np.int64)[group]
        self._sets = {"input": Clipper(waits.input), "sync": Clipper(waits.sync)}
        self._sets |= {PARTS[p]: Clipper(pieces[which]) for p, which in rows_by(part)}
        limits = [Limit(op.t_ns, op.bound.bound_ns, op.verdict.regime in KERNEL_PARTS[:3]) for op in ops.rows]
        self._kernels = KernelTime(pieces, group, limits)
        self.owners = Owned(pieces[:, 0], pieces[:, 1], group)
        self._calls = distinct(selfs.op[mine])
        self._start = recording.timeline.host.start[self._calls]
        self._group = np.array([ops.of_call[row] for row in self._calls.tolist()], np.int64)

    def parts(self, start: I64, end: I64) -> list[dict[str, int]]:
        """Ns of each part within each window [start, end); they sum to its length."""
        columns = {name: clipper.within(start, end) for name, clipper in self._sets.items()}
        columns["host"] = end - start - sum(columns.values())
        values = zip(*(c.tolist() for c in columns.values()), strict=True)
        return [dict.fromkeys(PARTS, 0) | dict(zip(columns, row, strict=True)) for row in values]

    def calls(self, n: int, depth: Depth) -> I64:
        """How many calls of each of ``n`` groups start within the windows."""
        return summed_by(self._group, depth.at(self._start), n)

    def light(self, start: I64, end: I64) -> list[SpeedOfLight]:
        """Speed of light of the op time within each window [start, end)."""
        return self._kernels.within(start, end)


def _row(s: StepSpan, parts: Mapping[str, int], verdict: StepVerdict, light: SpeedOfLight) -> CpuStep:
    return CpuStep(
        n=s.n,
        step_time_us=us(s.end - s.start),
        parts_us=parts_us(parts),
        regime=verdict.regime,
        regime_confidence=verdict.confidence,
        regime_reason=verdict.reason,
        attainable_us=us(light.attainable_ns),
        bound_us=us(light.bound_ns),
        start_us=us(s.start),
    )


def _whole(timeline: Timeline) -> StepSpan:
    """The whole recording, on the thread with most op time."""
    host = timeline.host
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    rows = ops if ops.size else np.arange(len(host))
    busy = np.bincount(host.thread[rows], weights=(host.end[rows] - host.start[rows]).astype(float))
    return StepSpan(0, int(host.start.min()), int(host.end.max()), int(busy.argmax()))


def _other_threads(timeline: Timeline, mine: set[int]) -> dict[str, float]:
    host = timeline.host
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    busy: dict[str, float] = {}
    for thread, at in rows_by(host.thread[ops]):
        if thread not in mine:
            pid, tid = timeline.threads[thread]
            busy[f"{pid}/{tid}"] = us(measure(union(host.start[ops[at]], host.end[ops[at]])))
    return busy
