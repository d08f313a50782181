"""The host CPU as the device of a recording that has no GPU work (DEFINITIONS §20)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.idle import HostActivity
from rooflight.attribution.intervals import Clipper, difference, measure, union, union_of
from rooflight.attribution.launches import op_parents
from rooflight.attribution.selftime import SelfTime, self_times
from rooflight.attribution.steps import StepSpan
from rooflight.cost.estimate import estimate, is_known_op
from rooflight.cost.launches import op_call
from rooflight.cost.model import MODELLED, Cost
from rooflight.protocol import KERNEL_PARTS, PARTS, Cpu, CpuStep, Kernel, Roofs
from rooflight.regimes.kernels import KernelFacts, Verdict, kernel_regime
from rooflight.regimes.steps import StepVerdict, run_regime, step_regime
from rooflight.results.kernels import BINS
from rooflight.results.steps import parts_us
from rooflight.roofline.bounds import Bound, Work, bound
from rooflight.roofline.speed import KernelTime, SpeedOfLight, speed_of_light
from rooflight.trace.tables import I64, HostKind, rows_by
from rooflight.trace.timeline import Timeline
from rooflight.units import pct, us

#: Rows of autograd's engine: they call the op that works and do no arithmetic themselves.
_WRAPPER = re.compile(r"autograd::engine::evaluate_function: |[A-Za-z0-9_:]+Backward\d*$")
_WRAPS = Cost(
    flops=0, bytes_read=0, bytes_written=0, origin=MODELLED, reason="its work is in the ops inside it"
)


@dataclass(frozen=True, slots=True)
class _Op:
    """A group of calls: same op, dims and types.  ``self_ns`` per call, in order of their start."""

    name: str
    dims: str | None
    types: str | None
    calls: I64
    self_ns: I64
    cost: Cost
    bound: Bound
    verdict: Verdict

    @property
    def t_ns(self) -> float:
        return float(np.median(self.self_ns))


def cpu_device(
    timeline: Timeline, steps: Sequence[StepSpan], roofs: Roofs, *, grade: str, withheld: str | None
) -> Cpu | None:
    """Leaf ops on the host CPU's measured roof; ``None`` when the recording has no ops either."""
    selfs = self_times(timeline)
    if not len(timeline.host):
        return None
    ops, of_call = _ops(timeline, selfs, roofs)
    thread = _main_thread(timeline, steps)
    spans = list(steps) or [_whole(timeline, thread)]
    cuts = [_Cut(timeline, selfs, ops, of_call, s.thread) for s in _one_per_thread(spans)]
    by_thread = {c.thread: c for c in cuts}
    unknown = _unknown_share(ops)
    rows, parts = [], []
    for s in spans:
        cut = by_thread[s.thread]
        mine = cut.parts(s.start, s.end)
        parts.append(mine)
        verdict = step_regime(mine, grade=grade, unknown_inferred_frac=unknown, withheld=withheld)
        rows.append(_row(s, mine, verdict, cut.light(s.start, s.end)))
    whole = run_regime(parts, grade=grade, unknown_inferred_frac=unknown, withheld=withheld)
    return Cpu(
        roof=roofs,
        name=roofs.name,
        steps=rows if steps else [],
        ops=_op_rows(ops),
        parts_us=parts_us(_sum(parts)),
        wall_us=us(sum(s.end - s.start for s in spans)),
        threads_busy_us=_other_threads(timeline, {s.thread for s in spans}),
        regime=whole.regime,
        regime_confidence=whole.confidence,
        regime_reason=whole.reason,
    )


# -- ops -------------------------------------------------------------------------------------------


def _ops(timeline: Timeline, selfs: SelfTime, roofs: Roofs) -> tuple[list[_Op], dict[int, int]]:
    """Groups of calls, and the group of each call (a host row)."""
    time: dict[int, int] = defaultdict(int)
    for row, length in zip(selfs.op.tolist(), (selfs.end - selfs.start).tolist(), strict=True):
        time[row] += length
    wraps = _with_known_child(timeline)
    groups: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    host = timeline.host
    for row in time:
        groups[int(host.name[row]), int(host.args[row]), row in wraps].append(row)
    ops = [_op(timeline, key, rows, time, roofs) for key, rows in groups.items()]
    merged = {row: i for i, rows in enumerate(groups.values()) for row in rows}
    return ops, merged


def _op(
    timeline: Timeline, key: tuple[int, int, bool], rows: list[int], time: Mapping[int, int], roofs: Roofs
) -> _Op:
    name, args, wraps = timeline.names[key[0]], key[1], key[2]
    dims = types = None
    cost = _WRAPS if wraps or _WRAPPER.match(name) else None
    recorded = timeline.op_args[args] if args >= 0 else None
    if recorded is not None:
        dims, types = (t.decode("utf-8", "backslashreplace") or None for t in (recorded.dims, recorded.types))
    cost = cost or estimate(op_call(name, recorded))
    self_ns = np.array([time[r] for r in rows], np.int64)
    work = Work(
        cost.flops, cost.bytes, None, cost.dtype or "fp32" if cost.flops == 0 else cost.dtype, cost.matrix
    )
    limit = bound(work, roofs)
    facts = KernelFacts(
        t_ns=float(np.median(self_ns)),
        bound=limit,
        origin=cost.origin,
        family=cost.family,
        never_matrix=not cost.matrix,
    )
    return _Op(name, dims, types, np.array(rows, np.int64), self_ns, cost, limit, kernel_regime(facts))


def _with_known_child(timeline: Timeline) -> set[int]:
    """Ops around an op that has a formula: the cost is counted once, at the innermost."""
    parents = op_parents(timeline)
    known = [is_known_op(n) for n in timeline.names]
    around: set[int] = set()
    for row in np.flatnonzero(timeline.host.kind == HostKind.CPU_OP).tolist():
        if not known[timeline.host.name[row]] or timeline.host.args[row] < 0:
            continue
        parent = int(parents[row])
        while parent >= 0 and parent not in around:
            around.add(parent)
            parent = int(parents[parent])
    return around


def _unknown_share(ops: Sequence[_Op]) -> float:
    total = sum(int(o.self_ns.sum()) for o in ops)
    unknown = sum(int(o.self_ns.sum()) for o in ops if o.cost.origin in ("unknown", "inferred"))
    return unknown / total if total else 0.0


def _op_rows(ops: Sequence[_Op]) -> list[Kernel]:
    total = sum(int(o.self_ns.sum()) for o in ops)
    rows = [_op_row(o, total) for o in ops]
    return sorted(rows, key=lambda k: (-k.time_us, k.name, k.input_dims or ""))


def _op_row(o: _Op, total: int) -> Kernel:
    time, count = int(o.self_ns.sum()), int(o.self_ns.size)
    p50, p95, p99 = (float(p) for p in np.percentile(o.self_ns, (50, 95, 99)))
    flops = None if o.cost.flops is None else o.cost.flops * count
    size = None if o.cost.bytes is None else o.cost.bytes * count
    low, high = int(o.self_ns.min()), int(o.self_ns.max())
    limit = o.bound.bound_ns
    return Kernel(
        name=o.name,
        short_name=o.name,
        family=o.cost.family,
        dtype=o.cost.dtype,
        op=o.name,
        input_dims=o.dims,
        input_types=o.types,
        device="cpu",
        kind="op",
        count=count,
        time_us=us(time),
        share_pct=pct(time, total),
        min_us=us(low),
        p50_us=us(p50),
        p95_us=us(p95),
        p99_us=us(p99),
        max_us=us(high),
        flops=flops,
        bytes=size,
        origin=o.cost.origin,
        ai=_rounded(o.bound.ai),
        achieved_tflops=_rounded(flops / time / 1e3) if flops is not None and time else None,
        achieved_gbs=_rounded(size / time) if size is not None and time else None,
        bound_us=None if limit is None else us(round(limit * count)),
        roof_fraction=_rounded(limit / o.t_ns) if limit is not None and o.t_ns else None,
        roof_side=o.bound.side,
        regime=o.verdict.regime,
        reason=o.verdict.reason,
        cost_reason=o.cost.reason,
        above_peak=o.bound.above_datasheet(o.t_ns),
        histogram=[int(n) for n in np.histogram(o.self_ns, bins=BINS)[0]] if high > low else [],
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


# -- where the time of a thread goes -----------------------------------------------------------------


class _Cut:
    """One thread's time: input, sync, self time of ops by regime, else host."""

    def __init__(
        self, timeline: Timeline, selfs: SelfTime, ops: Sequence[_Op], of_call: Mapping[int, int], thread: int
    ) -> None:
        self.thread = thread
        self._ops = ops
        mine = np.flatnonzero(selfs.thread == thread)
        group = np.array([of_call[r] for r in selfs.op[mine].tolist()], np.int64)
        waits = HostActivity(timeline).of(thread)
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


def _sum(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(p[name] for p in parts) for name in PARTS}


def _one_per_thread(spans: Sequence[StepSpan]) -> list[StepSpan]:
    return list({s.thread: s for s in spans}.values())


def _main_thread(timeline: Timeline, steps: Sequence[StepSpan]) -> int:
    """The thread of the steps; without steps, the one with most op time."""
    if steps:
        return steps[0].thread
    host = timeline.host
    ops = host.kind == HostKind.CPU_OP
    rows = np.flatnonzero(ops) if ops.any() else np.arange(len(host))
    busy = np.bincount(host.thread[rows], weights=(host.end[rows] - host.start[rows]).astype(float))
    return int(busy.argmax())


def _whole(timeline: Timeline, thread: int) -> StepSpan:
    return StepSpan(0, int(timeline.host.start.min()), int(timeline.host.end.max()), thread)


def _other_threads(timeline: Timeline, mine: set[int]) -> dict[str, float]:
    host = timeline.host
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    busy: dict[str, float] = {}
    for thread, at in rows_by(host.thread[ops]):
        if thread not in mine:
            pid, tid = timeline.threads[thread]
            busy[f"{pid}/{tid}"] = us(measure(union(host.start[ops[at]], host.end[ops[at]])))
    return busy
