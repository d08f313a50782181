"""A step's work by the phase of training that launched it, as exclusive parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflight.attribution.intervals import Clipper, union
from rooflight.attribution.phases import PHASES
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import KERNEL_PARTS, Parts
from rooflight.regimes.partition import Partition
from rooflight.results.exclusive import exposed
from rooflight.results.launches import Columns
from rooflight.results.steps import parts_us
from rooflight.trace.tables import I8, I64, GpuKind, Mask, distinct
from rooflight.trace.timeline import Timeline

#: The parts in which the device works.
WORK = (*KERNEL_PARTS, "communication", "copy")


def phase_parts(
    timeline: Timeline, of: I8, p: Partition, rank: I64, is_comm: Mask, start: I64, end: I64
) -> dict[tuple[str, str], I64]:
    """The ns of each (phase, part) within each window [start, end); pairs without any work are left out.

    Over the phases each part of :data:`WORK` adds up to that of the window.  Row-aligned with the GPU events
    are ``of``, their phases, ``rank``, the part of every kernel that is not communication
    (:data:`rooflight.regimes.partition.RANK`), and ``is_comm``, the others.
    """
    begin, over, row, part = _owners(timeline, p, rank, is_comm)
    label = of[row].astype(np.int64) * len(WORK) + part
    found = {}
    for number in distinct(label).tolist():
        phase, place = divmod(number, len(WORK))
        mine = union(begin[label == number], over[label == number])
        found[PHASES[phase], WORK[place]] = Clipper(mine).within(start, end)
    return found


def phase_rows(found: dict[tuple[str, str], I64]) -> dict[str, Parts]:
    """The parts of each phase over all windows, in the order of the phases."""
    rows: dict[str, dict[str, int]] = {phase: {} for phase in PHASES}
    for (phase, part), ns in found.items():
        rows[phase][part] = int(ns.sum())
    return {phase: parts_us(parts) for phase, parts in rows.items() if any(parts.values())}


def phase_columns(found: dict[tuple[str, str], I64], spans: Sequence[StepSpan]) -> Columns:
    """One row per step (without steps one, of step -1) and phase: ``work_ns`` and the ns of its parts."""
    n = max(1, len(spans))
    phases = [phase for phase in PHASES if any(pair[0] == phase for pair in found)]
    none = np.zeros(n, np.int64)
    columns = {
        f"{part}_ns": np.column_stack([found.get((phase, part), none) for phase in phases]).ravel()
        for part in (WORK if phases else ())
    }
    return {
        "step": np.repeat(np.array([s.n for s in spans] or [-1], np.int64), len(phases)),
        "phase": np.array(phases * n, object),
        "work_ns": sum(columns.values(), np.zeros(len(phases) * n, np.int64)),
        **columns,
    }


def _owners(timeline: Timeline, p: Partition, rank: I64, is_comm: Mask) -> tuple[I64, I64, I64, I64]:
    """Disjoint instants in which the device works: start, end, the GPU event that has them, their part."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    rows = timeline.settled(rows[gpu.device[rows] == p.device])
    k = p.kernels
    parts = [(k.start, k.end, k.owner, rank[k.owner])]
    for name, mine, where in (
        ("communication", is_comm[rows], p.communication),
        ("copy", gpu.kind[rows] != GpuKind.KERNEL, p.copies),
    ):
        pieces, owner = exposed(timeline, rows[mine], where)
        parts.append((pieces[:, 0], pieces[:, 1], owner, np.full(owner.size, WORK.index(name))))
    start, end, row, part = (np.concatenate(column) for column in zip(*parts, strict=True))
    return start, end, row, part
