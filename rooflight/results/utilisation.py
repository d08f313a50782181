"""Model and hardware FLOPs utilisation of steps (DEFINITIONS §9: MFU, HFU).

HFU counts the FLOPs that ran.  MFU counts those of the model alone: what a checkpoint computes a second time
for the backward pass is none of them, nor is the product that the backward pass of fused attention repeats,
the fifth of its five.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.attribution.launches import Links, enclosing
from rooflight.attribution.phases import BACKWARD, backward_marks
from rooflight.kernels import MATRIX_FAMILIES
from rooflight.protocol import Roofs
from rooflight.roofline.bounds import compute_ceiling
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I8, I64, GpuKind, HostKind, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import NS_PER_S

#: Of the time of matrix kernels, the share whose FLOPs must be known.
LEAST_KNOWN = 0.8
#: Of the five products of an attention's backward pass, those that the model asks for.
ATTENTION_BACKWARD = 0.8


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Fractions of the datasheet's peak; ``None`` where too little of the FLOPs or no peak is known."""

    mfu: float | None = None
    hfu: float | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """Matrix kernels of one device in the order of their start: FLOPs that ran and those of the model (NaN:
    unknown), length in ns, and the place of their type in ``peaks`` (FLOP/s, NaN: unknown)."""

    start: I64
    ran: F64
    model: F64
    length: I64
    kind: I64
    peaks: tuple[float, ...]


def utilisation(
    timeline: Timeline,
    links: Links,
    phase: I8,
    groups: Groups,
    device: int,
    roofs: Roofs,
    start: I64,
    end: I64,
) -> list[Utilisation]:
    """Of each step [start, end), on one device; a kernel belongs to the step in which it starts.

    ``phase`` is that of each GPU event (:func:`rooflight.attribution.phases.phases`).
    """
    work = _matrix_work(timeline, links, phase, groups, device, roofs)
    steps = _Steps.of(work.start, start, end)
    most = steps.peak(work) * (end - start) / NS_PER_S
    mfu, hfu = (steps.share(flops, work.length, most) for flops in (work.model, work.ran))
    return [Utilisation(*row) for row in zip(mfu, hfu, strict=True)]


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps by the places [low, high) of their kernels."""

    low: I64
    high: I64

    @classmethod
    def of(cls, kernels: I64, start: I64, end: I64) -> _Steps:
        low, high = (np.searchsorted(kernels, t) for t in (start, end))
        return cls(low, np.maximum(low, high))

    def peak(self, work: _Work) -> F64:
        """Of the type that most of each step's known FLOPs have; NaN without any."""
        ran = np.nan_to_num(work.ran)
        by_kind = [self._sum(np.where(work.kind == k, ran, 0.0)) for k in range(len(work.peaks))]
        sums = np.array([np.zeros(self.low.size), *by_kind])
        peaks: F64 = np.array([np.nan, *work.peaks])[sums.argmax(axis=0)]
        return peaks

    def share(self, flops: F64, length: I64, most: F64) -> list[float | None]:
        """The sum of the known FLOPs over ``most``; ``None`` where that is nothing, or too little of the time
        has known ones."""
        known = ~np.isnan(flops)
        told = self._sum(np.where(known, length, 0)) >= LEAST_KNOWN * self._sum(length)
        done = self._sum(np.where(known, flops, 0.0))
        return [
            float(f / m) if enough and m > 0 else None
            for enough, f, m in zip(told.tolist(), done.tolist(), most.tolist(), strict=True)
        ]

    def _sum(self, column: F64 | I64) -> F64:
        """The sum of each step; steps may hold each other, so none is added up by itself."""
        before = np.concatenate((np.zeros(1, np.longdouble), np.cumsum(column, dtype=np.longdouble)))
        return (before[self.high] - before[self.low]).astype(np.float64)


def _matrix_work(
    timeline: Timeline, links: Links, phase: I8, groups: Groups, device: int, roofs: Roofs
) -> _Work:
    gpu = timeline.gpu
    rows = timeline.valid_gpu
    of_group = _Table(groups, roofs)
    mine = (gpu.device[rows] == device) & (gpu.kind[rows] == GpuKind.KERNEL)
    rows = rows[mine & of_group.matrix[groups.of_event[rows]]]
    rows = rows[np.argsort(gpu.start[rows], kind="stable")]
    group = groups.of_event[rows]
    ran = of_group.flops[group]
    marks = backward_marks(timeline)
    model = np.where(
        recomputed(timeline, links.launch[rows], phase[rows], marks), 0.0, ran * of_group.share[group]
    )
    if marks.any():
        # Without its launch a kernel may be of the model or of a checkpoint.
        model[links.launch[rows] < 0] = np.nan
    return _Work(
        start=gpu.start[rows],
        ran=ran,
        model=model,
        length=gpu.end[rows] - gpu.start[rows],
        kind=of_group.kind[group],
        peaks=of_group.peaks,
    )


class _Table:
    """By group: whether it multiplies matrices, FLOPs of one launch, the model's share of them, its type."""

    def __init__(self, groups: Groups, roofs: Roofs) -> None:
        rows = groups.rows
        self.matrix: Mask = np.array(
            [g.work.matrix or g.name.family in MATRIX_FAMILIES for g in rows] + [False], bool
        )
        self.flops = np.array([_flops(g.work.flops) for g in rows])
        self.share = np.array([ATTENTION_BACKWARD if g.cost.family == "attention_bwd" else 1.0 for g in rows])
        numbers: dict[tuple[str | None, bool], int] = {}
        peaks: list[float] = []
        kinds = []
        for g in rows:
            key = g.work.dtype, g.work.matrix
            if key not in numbers:
                numbers[key] = len(peaks)
                roof = compute_ceiling(g.work, roofs)
                peaks.append(roof.datasheet if roof and roof.datasheet else float("nan"))
            kinds.append(numbers[key])
        self.kind, self.peaks = np.array(kinds, np.int64), tuple(peaks)


def _flops(flops: float | None) -> float:
    return float("nan") if flops is None else float(flops)


def recomputed(timeline: Timeline, launch: I64, phase: I8, marks: Mask) -> Mask:
    """What the backward pass ran of the forward pass once more, row-aligned with ``launch`` and ``phase``.

    Autograd gives a number to ops that it will need the gradients of.  In the backward pass none gets one,
    but for those that a checkpoint runs again.  ``marks`` are the host rows of the backward pass.
    """
    again: Mask = phase == BACKWARD
    if not again.any():
        return again
    host = timeline.host
    numbered = (host.kind == HostKind.CPU_OP) & (host.seq >= 0) & (host.fwd_thread <= 0)
    numbered &= ~marks
    around = enclosing(timeline, np.where(again, launch, -1), np.flatnonzero(numbered | marks))
    forward: Mask = np.append(numbered, False)[around]
    return again & forward
