"""The work of the steps: FLOPs, bytes and time of kernels of known cost, by number type and origin.

A kernel counts for the step in which it starts, with all of its work; communication and copies are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.cost.launches import LaunchCosts
from rooflight.protocol import ORIGINS, StepWork
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, Mask, distinct
from rooflight.trace.timeline import Timeline
from rooflight.units import us

#: What the protocol can tell; work beyond it is unknown.
_MOST = (1 << 63) - 1
_LOW_BITS = 31
Kind = tuple[str | None, bool, str]


@dataclass(frozen=True, slots=True)
class WorkDone:
    """``known`` is the work of known FLOPs and bytes, by number type and origin; ``time_ns`` that of all
    kernels that calculate, known or not."""

    known: tuple[StepWork, ...] = ()
    time_ns: int = 0


def work_done(
    timeline: Timeline,
    costs: LaunchCosts,
    groups: Groups,
    is_comm: Mask,
    device: int,
    start: I64,
    end: I64,
) -> list[WorkDone]:
    """The work of each step [start, end) on one device."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    mine = (gpu.device[rows] == device) & (gpu.kind[rows] == GpuKind.KERNEL) & ~is_comm[rows]
    rows = rows[mine]
    rows = rows[np.argsort(gpu.start[rows], kind="stable")]
    low, high = (np.searchsorted(gpu.start[rows], t) for t in (start, end))
    time = _sums(gpu.end[rows] - gpu.start[rows], low, high)
    by_kind = list(_by_kind(timeline, costs, groups, rows, low, high))
    return [
        WorkDone(tuple(w for works in by_kind if (w := works[i]) is not None), ns)
        for i, ns in enumerate(time)
    ]


def _by_kind(
    timeline: Timeline, costs: LaunchCosts, groups: Groups, rows: I64, low: I64, high: I64
) -> Iterator[list[StepWork | None]]:
    """For each number type and origin the work of every step."""
    table, group, index = _Table(costs, groups), groups.of_event[rows], costs.index[rows]
    length = timeline.gpu.end[rows] - timeline.gpu.start[rows]
    known = table.known[index] & (length > 0)
    kind = table.kind[group] * len(ORIGINS) + table.origin[index]
    for number in distinct(kind[known]).tolist():
        here = np.flatnonzero(known & (kind == number))
        begin, end = (np.searchsorted(here, border) for border in (low, high))
        of = index[here]
        columns = (table.flops[of], table.bytes[of], length[here], np.ones_like(here))
        sums = [_sums(column, begin, end) for column in columns]
        bound = _float_sums(table.bound_ns[group[here]], begin, end)
        dtype, matrix = table.kinds[number // len(ORIGINS)]
        what = (dtype, matrix, ORIGINS[number % len(ORIGINS)])
        yield [_work(what, *row) for row in zip(*sums, bound, strict=True)]


def _work(kind: Kind, flops: int, size: int, ns: int, count: int, bound_ns: float) -> StepWork | None:
    if not count or max(flops, size) > _MOST:
        return None
    bound = None if np.isnan(bound_ns) else us(round(bound_ns))
    return StepWork(*kind, count=count, time_us=us(ns), flops=flops, bytes=size, bound_us=bound)


class _Table:
    """By cost: FLOPs and bytes, whether both are known, and their origin; by group: its number type, and
    the least time of one launch in ns (NaN: unknown)."""

    def __init__(self, costs: LaunchCosts, groups: Groups) -> None:
        told = [_told(c.flops, c.bytes) for c in costs.costs]
        self.known: Mask = np.array([t is not None for t in told], bool)
        self.flops = np.array([t[0] if t else 0 for t in told], np.int64)
        self.bytes = np.array([t[1] if t else 0 for t in told], np.int64)
        self.origin = np.array([ORIGINS.index(c.origin) for c in costs.costs], np.int64)
        numbers: dict[tuple[str | None, bool], int] = {}
        kinds = [numbers.setdefault((g.work.dtype, g.work.matrix), len(numbers)) for g in groups.rows]
        self.kind = np.array(kinds, np.int64)
        self.kinds = list(numbers)
        self.bound_ns = np.array([_bound(g.total_bound_ns, g.rows.size) for g in groups.rows])


def _told(flops: int | None, size: int | None) -> tuple[int, int] | None:
    return None if flops is None or size is None or max(flops, size) > _MOST else (flops, size)


def _bound(total_ns: float | None, count: int) -> float:
    return float("nan") if total_ns is None else total_ns / count


def _sums(values: I64, low: I64, high: I64) -> list[int]:
    """Exact sums of ``values[low:high]``, also beyond 2**63: of the high and the low bits apart."""
    upper, lower = (
        _differences(part, low, high) for part in (values >> _LOW_BITS, values & (1 << _LOW_BITS) - 1)
    )
    return [(a << _LOW_BITS) + b for a, b in zip(upper.tolist(), lower.tolist(), strict=True)]


def _differences(values: I64, low: I64, high: I64) -> I64:
    before = np.concatenate(([0], np.cumsum(values)))
    found: I64 = before[np.maximum(low, high)] - before[low]
    return found


def _float_sums(values: F64, low: I64, high: I64) -> list[float]:
    """Sums of ``values[low:high]``, NaN where one of them is."""
    unknown = np.isnan(values)
    before = np.concatenate(([0.0], np.cumsum(np.where(unknown, 0.0, values))))
    sums = before[np.maximum(low, high)] - before[low]
    sums[_differences(unknown.astype(np.int64), low, high) > 0] = np.nan
    found: list[float] = np.maximum(sums, 0.0).tolist()
    return found
