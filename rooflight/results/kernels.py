"""Rows of the kernel table, with the one regime that each group has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooflight.hardware.occupancy import Occupancy, occupancy
from rooflight.kernels import MATRIX_FAMILIES
from rooflight.protocol import Kernel, Roofs
from rooflight.regimes.kernels import KernelFacts, Verdict, kernel_regime
from rooflight.roofline.groups import Group
from rooflight.trace.tables import GpuKind, Mask
from rooflight.trace.timeline import DeviceProperties, Timeline
from rooflight.units import pct, us

BINS = 12
#: Families of which the name does not tell whether they multiply matrices.
_OPEN_FAMILIES = frozenset({"other", "triton_template", "triton_unknown"})
_MAX_TEXT = 4096


def verdicts(
    timeline: Timeline, groups: Sequence[Group], is_comm: Mask, roofs: Sequence[Roofs]
) -> list[Verdict]:
    """The regime of each group, row-aligned with ``groups``."""
    by_id = {d.id: d for d in timeline.meta.devices}
    facts = (
        _facts(
            timeline, g, bool(is_comm[g.rows[0]]), roofs[g.device], by_id.get(timeline.device_keys[g.device])
        )
        for g in groups
    )
    return [kernel_regime(f) for f in facts]


def _facts(
    timeline: Timeline, g: Group, communication: bool, roofs: Roofs, device: DeviceProperties | None
) -> KernelFacts:
    family = g.name.family
    room = _occupancy(g, device)
    return KernelFacts(
        t_ns=g.t_ns,
        bound=g.bound,
        kind=GpuKind(g.kind).name.lower(),
        communication=communication,
        origin=g.origin,
        family=family,
        never_matrix=family not in MATRIX_FAMILIES and family not in _OPEN_FAMILIES,
        blocks=math.prod(g.shape.grid) if g.shape and g.shape.grid else None,
        sm_count=device.sm_count if device and device.sm_count else roofs.sm_count,
        occupancy=room.fraction if room else None,
        is_hip=timeline.meta.is_hip,
    )


def _occupancy(g: Group, device: DeviceProperties | None) -> Occupancy | None:
    shape = g.shape
    if device is None or device.compute is None or shape is None or not shape.block:
        return None
    if shape.registers is None:
        return None
    return occupancy(
        device.compute, math.prod(shape.block), shape.registers, shape.shared_memory or 0, device.limits
    )


def kernel_rows(
    timeline: Timeline, groups: Sequence[Group], regimes: Sequence[Verdict]
) -> tuple[list[Kernel], list[int]]:
    """The rows, largest total time first, and the row of each group; ``share_pct`` is of all GPU work."""
    durations = [timeline.gpu.end[g.rows] - timeline.gpu.start[g.rows] for g in groups]
    total = sum(int(d.sum()) for d in durations)
    rows = [
        _row(timeline, g, v, np.sort(d), total) for g, v, d in zip(groups, regimes, durations, strict=True)
    ]
    order = sorted(range(len(rows)), key=lambda i: (-rows[i].time_us, rows[i].name, i))
    place = [0] * len(order)
    for row, group in enumerate(order):
        place[group] = row
    return [rows[i] for i in order], place


def _row(
    timeline: Timeline,
    g: Group,
    verdict: Verdict,
    durations: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    total: int,
) -> Kernel:
    time, count = int(durations.sum()), int(durations.size)
    p50, p95, p99 = (float(p) for p in np.percentile(durations, (50, 95, 99)))
    bound_ns = g.bound.bound_ns
    return Kernel(
        name=g.name.name,
        short_name=g.name.short_name,
        family=g.name.family,
        dtype=g.work.dtype,
        op=g.op,
        module=g.module,
        input_dims=_cut(g.dims),
        input_types=_cut(g.types),
        device=timeline.device_keys[g.device],
        kind=GpuKind(g.kind).name.lower(),
        count=count,
        time_us=us(time),
        share_pct=pct(time, total),
        min_us=us(durations[0]),
        p50_us=us(p50),
        p95_us=us(p95),
        p99_us=us(p99),
        max_us=us(durations[-1]),
        flops=g.flops,
        bytes=g.bytes,
        origin=g.origin,
        ai=_rounded(g.bound.ai),
        achieved_tflops=_rate(g.flops, time, 1e3),
        achieved_gbs=_rate(g.bytes, time, 1.0),
        bound_us=None if bound_ns is None else us(round(bound_ns * count)),
        roof_fraction=None if bound_ns is None or not g.t_ns else _rounded(bound_ns / g.t_ns),
        roof_side=g.bound.side,
        regime=verdict.regime,
        reason=verdict.reason,
        cost_reason=g.cost.reason,
        above_peak=g.bound.above_datasheet(g.t_ns),
        histogram=_histogram(durations),
    )


def _histogram(durations: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
    if durations[0] == durations[-1]:
        return []
    return [int(n) for n in np.histogram(durations, bins=BINS)[0]]


def _rate(amount: int | None, ns: int, per: float) -> float | None:
    """Amount per ns over ``per``: FLOP/ns over 1000 is TFLOP/s, byte/ns is GB/s."""
    return None if amount is None or not ns else _rounded(amount / ns / per)


def _rounded(value: float | None) -> float | None:
    """Six significant digits: more would pretend to a precision that no timer has."""
    return None if value is None else float(f"{value:.6g}")


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
