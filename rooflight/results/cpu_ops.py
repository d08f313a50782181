"""Leaf work on the host CPU: ops by their self time, with cost, bound and regime (DEFINITIONS §20)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.launches import op_parents
from rooflight.attribution.selftime import SelfTime
from rooflight.cost.estimate import estimate
from rooflight.cost.launches import op_call
from rooflight.cost.model import MODELLED, Cost
from rooflight.protocol import Kernel, Roofs
from rooflight.regimes.kernels import KernelFacts, Verdict, kernel_regime
from rooflight.results.exclusive import Exclusive, with_exclusive
from rooflight.results.rows import Spread, Work, cut, spreads, table_row
from rooflight.roofline import bounds
from rooflight.trace.tables import I64, HostKind
from rooflight.trace.timeline import Timeline

#: Rows of autograd's engine: they call the op that works and do no arithmetic themselves.
_WRAPPER = re.compile(r"autograd::engine::evaluate_function: |[A-Za-z0-9_:]+Backward\d*$")
_WRAPS = Cost(
    flops=0,
    bytes_read=0,
    bytes_written=0,
    origin=MODELLED,
    reason="its work is in the ops inside it",
    dtype="fp32",
)


@dataclass(frozen=True, slots=True)
class CpuOp:
    """A group of calls: same op, dims and types.  ``self_ns`` are the calls' self times, shortest first."""

    name: str
    dims: str | None
    types: str | None
    self_ns: I64
    cost: Cost
    work: bounds.Work
    bound: bounds.Bound
    verdict: Verdict

    @property
    def t_ns(self) -> float:
        """The median self time of a call, in ns."""
        return float(np.median(self.self_ns))

    @property
    def total_ns(self) -> int:
        return int(self.self_ns.sum())


@dataclass(frozen=True, slots=True)
class CpuOps:
    """All groups, and the group of each host row that is an op with self time."""

    rows: tuple[CpuOp, ...]
    of_call: Mapping[int, int]

    @property
    def ns_by_origin(self) -> dict[str, int]:
        """Self time per origin of its cost, in ns."""
        total = dict.fromkeys(("measured", "modelled", "inferred", "unknown"), 0)
        for op in self.rows:
            total[op.cost.origin] += op.total_ns
        return total


def cpu_ops(timeline: Timeline, selfs: SelfTime, roofs: Roofs) -> CpuOps:
    """Group the calls and judge each group on the roofs of the CPU."""
    time: dict[int, int] = defaultdict(int)
    for row, length in zip(selfs.op.tolist(), (selfs.end - selfs.start).tolist(), strict=True):
        time[row] += length
    host = timeline.host
    costs = _Costs(timeline)
    groups: dict[tuple[int, int, Cost], list[int]] = defaultdict(list)
    inputs: list[int] = timeline.inputs[host.args].tolist()
    for row in time:
        groups[int(host.name[row]), inputs[row], costs.of(row)].append(row)
    rows = tuple(
        _op(timeline, calls[0], cost, [time[r] for r in calls], roofs)
        for (_, _, cost), calls in groups.items()
    )
    return CpuOps(rows, {row: i for i, calls in enumerate(groups.values()) for row in calls})


class _Costs:
    """The cost of a call's self time: nothing where the ops inside it do its work."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known: dict[tuple[int, int], Cost] = {}
        self._inside = self._work_inside()

    def of(self, row: int) -> Cost:
        cost = self._recorded(row)
        flops, size = self._inside.get(row, (0, 0))
        if _WRAPPER.match(self._timeline.names[self._timeline.host.name[row]]):
            return _WRAPS
        # Helpers inside an op (a fill, a view) do a sliver of its work; a leaf does all of it.
        if cost.flops and 2 * flops >= cost.flops:
            return _WRAPS
        return _WRAPS if not cost.flops and size and 2 * size >= (cost.bytes or 0) else cost

    def _recorded(self, row: int) -> Cost:
        host = self._timeline.host
        key = (int(host.name[row]), int(host.args[row]))
        if key not in self._known:
            name, args = key
            recorded = self._timeline.op_args[args] if args >= 0 else None
            self._known[key] = estimate(op_call(self._timeline.names[name], recorded))
        return self._known[key]

    def _work_inside(self) -> dict[int, tuple[int, int]]:
        """The most FLOPs and bytes of any op inside each op, from the innermost out."""
        host = self._timeline.host
        parents = op_parents(self._timeline)
        ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
        inside_out = ops[np.lexsort((-host.end[ops], host.start[ops], host.thread[ops]))][::-1]
        most: dict[int, tuple[int, int]] = {}
        for row in inside_out.tolist():
            parent = int(parents[row])
            if parent < 0:
                continue
            cost = self._recorded(row)
            own, deeper, there = (
                (cost.flops or 0, cost.bytes or 0),
                most.get(row, (0, 0)),
                most.get(parent, (0, 0)),
            )
            most[parent] = (max(own[0], deeper[0], there[0]), max(own[1], deeper[1], there[1]))
        return most


def _op(timeline: Timeline, row: int, cost: Cost, self_ns: list[int], roofs: Roofs) -> CpuOp:
    name, args = timeline.names[timeline.host.name[row]], int(timeline.host.args[row])
    dims = types = None
    if args >= 0:
        recorded = timeline.op_args[args]
        dims, types = (t.decode("utf-8", "backslashreplace") or None for t in (recorded.dims, recorded.types))
    times = np.sort(np.array(self_ns, np.int64))
    work = bounds.Work(cost.flops, cost.bytes, None, cost.dtype, cost.matrix)
    limit = bounds.bound(work, roofs)
    facts = KernelFacts(
        t_ns=float(np.median(times)),
        bound=limit,
        origin=cost.origin,
        family=cost.family,
        never_matrix=not cost.matrix,
    )
    return CpuOp(name, dims, types, times, cost, work, limit, kernel_regime(facts))


def op_rows(ops: Sequence[CpuOp], own: Exclusive, *, steps: bool) -> list[Kernel]:
    """The rows as those of kernels, largest self time first; ``own`` is the time of each in the spans."""
    total = sum(o.total_ns for o in ops)
    rows = [_row(o, s, total) for o, s in zip(ops, spreads([o.self_ns for o in ops]), strict=True)]
    with_exclusive(rows, range(len(rows)), own, steps=steps)
    return sorted(rows, key=lambda k: (-k.time_us, k.name, k.input_dims or ""))


def _row(o: CpuOp, spread: Spread, total: int) -> Kernel:
    count = int(o.self_ns.size)
    flops, size = (None if n is None else n * count for n in (o.cost.flops, o.cost.bytes))
    limit = o.bound.bound_ns
    whole = None if limit is None else limit * count
    row = table_row(spread, total, Work(flops, size, limit, whole, o.t_ns, o.bound.ai))
    row.name = row.short_name = row.op = o.name
    row.kind, row.device = "op", "cpu"
    row.family, row.dtype = o.cost.family, o.cost.dtype
    row.input_dims, row.input_types = cut(o.dims), cut(o.types)
    row.origin, row.cost_reason = o.cost.origin, o.cost.reason
    row.roof_side, row.above_peak = o.bound.side, o.bound.above_datasheet(o.t_ns)
    row.regime, row.reason = o.verdict.regime, o.verdict.reason
    return row
