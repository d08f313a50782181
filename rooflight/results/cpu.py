"""The host CPU as the device of a recording that has no GPU work (DEFINITIONS §20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.idle import HostActivity
from rooflight.attribution.intervals import Clipper, difference, measure, union, union_of
from rooflight.attribution.selftime import SelfTime, self_times
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import KERNEL_PARTS, PARTS, Cpu, CpuStep, Roofs
from rooflight.regimes.steps import StepVerdict, run_regime, step_regime, summed
from rooflight.results.cpu_ops import CpuOps, cpu_ops, op_rows
from rooflight.results.steps import parts_us
from rooflight.roofline.bounds import lacks_roof
from rooflight.roofline.speed import KernelTime, SpeedOfLight, speed_of_light
from rooflight.trace.tables import HostKind, rows_by
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
    parts = [cuts[s.thread].parts(s.start, s.end) for s in spans]
    judged = {"grade": grade, "unknown_inferred_frac": doubt, "withheld": withheld}
    rows = [
        _row(s, p, step_regime(p, **judged), cuts[s.thread].light(s.start, s.end))  # type: ignore[arg-type]
        for s, p in zip(spans, parts, strict=True)
    ]
    whole = run_regime(parts, **judged)  # type: ignore[arg-type]
    return Cpu(
        roof=recording.roofs,
        name=recording.roofs.name,
        steps=rows if steps else [],
        ops=op_rows(recording.ops.rows),
        parts_us=parts_us(summed(parts)),
        wall_us=us(sum(s.end - s.start for s in spans)),
        threads_busy_us=_other_threads(recording.timeline, set(cuts)),
        regime=whole.regime,
        regime_confidence=whole.confidence,
        regime_reason=whole.reason,
    )


class _Cut:
    """One thread's time: input, sync, self time of ops by regime, else host."""

    def __init__(self, recording: CpuRecording, thread: int) -> None:
        selfs, ops = recording.selfs, recording.ops
        self._ops = ops.rows
        mine = np.flatnonzero(selfs.thread == thread)
        group = np.array([ops.of_call[row] for row in selfs.op[mine].tolist()], np.int64)
        waits = HostActivity(recording.timeline).of(thread)
        waiting = union_of(waits.input, waits.sync)
        self._by_op = {
            g: Clipper(difference(union(selfs.start[mine[at]], selfs.end[mine[at]]), waiting))
            for g, at in rows_by(group)
        }
        self._waits = {"input": Clipper(waits.input), "sync": Clipper(waits.sync)}

    def parts(self, start: int, end: int) -> dict[str, int]:
        """Ns of each part within [start, end); they sum to its length."""
        parts = dict.fromkeys(PARTS, 0)
        for name, clipper in self._waits.items():
            parts[name] = clipper.within(start, end)
        for g, clipper in self._by_op.items():
            parts[self._ops[g].verdict.regime] += clipper.within(start, end)
        parts["host"] = end - start - sum(parts.values())
        return parts

    def light(self, start: int, end: int) -> SpeedOfLight:
        """Speed of light of the op time within [start, end)."""
        return speed_of_light(
            KernelTime(n, op.t_ns, op.bound.bound_ns, op.verdict.regime in KERNEL_PARTS[:3])
            for g, clipper in self._by_op.items()
            if (n := clipper.within(start, end)) and (op := self._ops[g])
        )


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
