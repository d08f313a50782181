"""Rows of the kernel table, with the one regime that each group has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import msgspec

from rooflight.attribution.launches import Links
from rooflight.attribution.modules import ModulePaths
from rooflight.hardware.limits import Limits
from rooflight.hardware.occupancy import Occupancy, limits_on, occupancy
from rooflight.kernels import MATRIX_FAMILIES
from rooflight.protocol import Kernel, Roofs
from rooflight.regimes.kernels import KernelFacts, Verdict, kernel_regime
from rooflight.regimes.limiter import Launch, limiter
from rooflight.results.rows import Spread, Work, cut, spreads, table_row
from rooflight.roofline.groups import Group
from rooflight.trace.tables import GpuKind, Mask
from rooflight.trace.timeline import DeviceProperties, LaunchShape, Timeline

#: The largest number of a row (:class:`rooflight.protocol.Kernel`).
_MOST = 2**63 - 1
_KINDS = tuple(kind.name.lower() for kind in GpuKind)
#: Families of which the name does not tell whether they multiply matrices.
_OPEN_FAMILIES = frozenset({"other", "triton_template", "triton_unknown"})


def verdicts(
    timeline: Timeline, groups: Sequence[Group], is_comm: Mask, roofs: Sequence[Roofs]
) -> list[Verdict]:
    """The regime of each group, row-aligned with ``groups``."""
    devices = [_Device.of(timeline.meta.device(key)) for key in timeline.device_keys]
    return [
        _verdict(timeline, g, bool(is_comm[g.rows[0]]), roofs[g.device], devices[g.device]) for g in groups
    ]


@dataclass(frozen=True, slots=True)
class _Device:
    """What a recording tells of a device, with the limits of its SMs; empty and ``None`` are unknown."""

    sm_count: int | None = None
    compute: str = ""
    limits: Limits | None = None
    _rooms: dict[tuple[int, int, int], Occupancy | None] = field(default_factory=dict)

    @classmethod
    def of(cls, told: DeviceProperties | None) -> Self:
        if told is None:
            return cls()
        limits = limits_on(told.compute, told.limits) if told.compute is not None else None
        return cls(told.sm_count, told.compute or "", limits)

    def occupancy(self, shape: LaunchShape | None) -> Occupancy | None:
        """That of a launch; thousands of groups ask for few sizes of a block."""
        if self.limits is None or shape is None or not shape.block or shape.registers is None:
            return None
        asked = math.prod(shape.block), shape.registers, shape.shared_memory or 0
        if asked not in self._rooms:
            self._rooms[asked] = occupancy(self.compute, *asked, self.limits)
        return self._rooms[asked]


def _verdict(timeline: Timeline, g: Group, communication: bool, roofs: Roofs, device: _Device) -> Verdict:
    launch = _launch(timeline, g, roofs, device)
    found = kernel_regime(_facts(timeline, g, communication, launch))
    return msgspec.structs.replace(found, limiter=limiter(launch)) if found.regime == "latency" else found


def _facts(timeline: Timeline, g: Group, communication: bool, launch: Launch) -> KernelFacts:
    family = g.name.family
    return KernelFacts(
        t_ns=g.t_ns,
        bound=g.bound,
        kind=_KINDS[g.kind],
        communication=communication,
        origin=g.origin,
        family=family,
        never_matrix=family not in MATRIX_FAMILIES and family not in _OPEN_FAMILIES,
        blocks=launch.blocks,
        sm_count=launch.sm_count,
        occupancy=launch.room.fraction if launch.room else None,
        is_hip=timeline.meta.is_hip,
    )


def _launch(timeline: Timeline, g: Group, roofs: Roofs, device: _Device) -> Launch:
    shape = g.shape
    # A HIP grid in a trace may count work-items.
    grid = None if timeline.meta.is_hip or shape is None else shape.grid
    return Launch(
        blocks=math.prod(grid) if grid else None,
        threads=math.prod(shape.block) if shape and shape.block else None,
        registers=shape.registers if shape else None,
        shared_bytes=shape.shared_memory if shape else None,
        sm_count=device.sm_count or roofs.sm_count,
        room=device.occupancy(shape),
    )


def kernel_rows(
    timeline: Timeline,
    links: Links,
    groups: Sequence[Group],
    regimes: Sequence[Verdict],
    above: Mapping[int, str],
) -> tuple[list[Kernel], list[int]]:
    """The rows, largest total time first, and the row of each group; ``share_pct`` is of all GPU work.

    ``above`` holds the cause by place in ``groups`` of those that were faster than the datasheet allows.
    """
    total = sum(g.total_ns for g in groups)
    paths = ModulePaths(timeline)
    told = zip(groups, regimes, spreads([g.durations for g in groups]), strict=True)
    rows = [_row(timeline, g, verdict, spread, total) for g, verdict, spread in told]
    for i, cause in above.items():
        reasons = (rows[i].cost_reason, f"faster than the datasheet allows: {cause}")
        rows[i].above_peak, rows[i].cost_reason = True, "; ".join(filter(None, reasons))
    for kernel, g in zip(rows, groups, strict=True):
        kernel.module_path = paths.of(int(links.module[g.rows[0]]))
    order = sorted(range(len(rows)), key=lambda i: _place(rows[i]))
    place = [0] * len(order)
    for row, group in enumerate(order):
        place[group] = row
    return [rows[i] for i in order], place


def _place(row: Kernel) -> tuple[float, *tuple[str, ...]]:
    """Its place in the table: by time, of equals by what it is, never by its place in the file."""
    inputs = row.input_dims or "", row.input_types or ""
    return -row.time_us, row.name, row.op or "", row.module or "", *inputs, row.device, row.kind


def _row(timeline: Timeline, g: Group, verdict: Verdict, spread: Spread, total: int) -> Kernel:
    ai = None if g.flops is None or not g.bytes else g.flops / g.bytes
    work = Work(g.flops, g.bytes, g.bound.bound_ns, g.total_bound_ns, g.t_ns, ai)
    row = table_row(spread, total, work)
    row.name, row.short_name, row.family = g.name.name, g.name.short_name, g.name.family
    row.kind, row.device = _KINDS[g.kind], timeline.device_keys[g.device]
    row.op, row.module, row.dtype = g.op, g.module, g.work.dtype
    row.input_dims, row.input_types = cut(g.dims), cut(g.types)
    row.origin, row.cost_reason = g.origin, g.reason
    row.roof_side = g.bound.side
    row.regime, row.reason = verdict.regime, verdict.reason
    row.limiter = verdict.limiter
    row.matrix = g.work.matrix
    row.blocks = _count(math.prod(g.shape.grid) if g.shape and g.shape.grid else None)
    row.link_bytes = _count(None if g.work.link_bytes is None else round(g.work.link_bytes * len(g.rows)))
    return row


def _count(number: int | None) -> int | None:
    """A number from a recording that a row can hold; others are no launch that a device could run."""
    return number if number is not None and 0 <= number <= _MOST else None
