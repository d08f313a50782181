"""Figures of each device over the whole recording (DEFINITIONS §4)."""

from __future__ import annotations

import numpy as np

from rooflight.attribution.intervals import difference, intersection, measure, union, union_of
from rooflight.attribution.launches import Links
from rooflight.protocol import DeviceFigures
from rooflight.trace.tables import I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import pct, us


def device_figures(
    timeline: Timeline, links: Links, is_comm: Mask, device: int, name: str | None
) -> DeviceFigures:
    """Span, busy and idle time, kernels, communication and copies of one device.

    Identity: compute + exposed communication + exposed copies + idle = span, exactly.
    """
    gpu = timeline.gpu
    rows = timeline.valid_gpu
    rows = rows[gpu.device[rows] == device]
    kernel = gpu.kind[rows] == GpuKind.KERNEL
    kernels, comm = rows[kernel], rows[is_comm[rows]]
    compute_set = _spans(timeline, rows[kernel & ~is_comm[rows]])
    comm_set, mem_set = _spans(timeline, comm), _spans(timeline, rows[~kernel])
    working = union_of(compute_set, comm_set)
    span, busy = _extent(timeline, rows), measure(union_of(working, mem_set))
    overlap = measure(intersection(comm_set, compute_set))
    unlinked = kernels[links.launch[kernels] < 0]
    return DeviceFigures(
        name=name,
        n_gpu_events=int(rows.size),
        kernels=int(kernels.size),
        span_us=us(span),
        busy_us=us(busy),
        idle_us=us(span - busy),
        busy_pct=_percent(busy, span),
        kernel_sum_us=us(_sum(timeline, kernels)),
        compute_us=us(measure(compute_set)),
        comm_us=us(measure(comm_set)),
        mem_us=us(measure(mem_set)),
        exposed_comm_us=us(measure(difference(comm_set, compute_set))),
        overlap_pct=pct(overlap, measure(comm_set)),
        exposed_mem_us=us(measure(difference(mem_set, working))),
        unlinked_kernels=int(unlinked.size),
        unlinked_us=us(_sum(timeline, unlinked)),
    )


def kernel_sum(timeline: Timeline, device: int) -> int:
    """Plain sum of the kernel durations of a device, in ns."""
    gpu = timeline.gpu
    rows = timeline.valid_gpu
    return _sum(timeline, rows[(gpu.device[rows] == device) & (gpu.kind[rows] == GpuKind.KERNEL)])


def _percent(part: int, whole: int) -> float | None:
    return None if not whole else round(100.0 * part / whole, 3)


def _sum(timeline: Timeline, rows: I64) -> int:
    return int((timeline.gpu.end[rows] - timeline.gpu.start[rows]).sum())


def _extent(timeline: Timeline, rows: I64) -> int:
    if rows.size == 0:
        return 0
    return int(np.max(timeline.gpu.end[rows]) - np.min(timeline.gpu.start[rows]))


def _spans(timeline: Timeline, rows: I64) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return union(timeline.gpu.start[rows], timeline.gpu.end[rows])
