"""Kernel groups: the rows of the kernel table (DEFINITIONS §15).

A group is same name, op, module, input dims and types, device.  Its time is the median of its
launches; its work is that of one launch; bound and regime are decided once, and every launch has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.cost.launches import LaunchCosts
from rooflight.cost.model import INFERRED, MEASURED, MODELLED, UNKNOWN, Cost
from rooflight.kernels import KernelName
from rooflight.protocol import Roofs
from rooflight.roofline.bounds import Bound, Work, bound
from rooflight.trace.tables import I32, I64, GpuKind, combined, values_at
from rooflight.trace.timeline import LaunchShape, Timeline

_AMOUNTS = ("flops", "bytes", "link_bytes")
_ORIGIN_ORDER = (MEASURED, MODELLED, INFERRED, UNKNOWN)
_MATRIX_TYPES = frozenset({"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4"})


@dataclass(frozen=True, slots=True)
class Group:
    """One row: its launches (rows of ``timeline.gpu``), what they are, their work and bound.

    ``durations`` are those of the launches in ns, shortest first (not aligned with ``rows``).  ``flops``
    and ``bytes`` are totals over the launches; ``work`` is that of one.  ``t_ns`` is the median
    launch and ``bound`` that of the median work: copies of one row may differ a thousandfold in size, and
    the mean size over the median time is a rate that no launch had.  ``total_bound_ns`` is of all.
    """

    rows: I64
    name: KernelName
    kind: int
    device: int
    op: str | None
    module: str | None
    dims: str | None
    types: str | None
    shape: LaunchShape | None
    durations: I64
    flops: int | None
    bytes: int | None
    origin: str
    cost: Cost
    work: Work
    bound: Bound
    total_bound_ns: float | None

    @property
    def t_ns(self) -> float:
        """The median launch, in ns."""
        middle = self.durations.size // 2
        return (int(self.durations[middle]) + int(self.durations[-middle - 1])) / 2

    @property
    def total_ns(self) -> int:
        """All launches together, in ns."""
        return int(self.durations.sum())


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups, and for each row of ``timeline.gpu`` its group, -1 for invalid events."""

    rows: tuple[Group, ...]
    of_event: I32


def group_launches(
    timeline: Timeline,
    links: Links,
    costs: LaunchCosts,
    kernels: Mapping[int, KernelName],
    roofs: Sequence[Roofs],
) -> Groups:
    """Group the valid GPU events; ``roofs`` is row-aligned with ``timeline.device_keys``."""
    rows = timeline.valid_gpu
    inverse, first = _keys(timeline, links, costs, rows)
    order = np.argsort(inverse, kind="stable")
    borders = np.searchsorted(inverse[order], np.arange(first.size + 1))
    of_event = np.full(len(timeline.gpu), -1, np.int32)
    of_event[rows] = inverse
    maker = _Maker(timeline, links, costs, kernels, roofs)
    members = (rows[order[a:b]] for a, b in pairwise(borders.tolist()))
    return Groups(tuple(maker.group(m) for m in members), of_event)


def _keys(timeline: Timeline, links: Links, costs: LaunchCosts, rows: I64) -> tuple[I64, I64]:
    """The group number of each row, by first appearance of the combined key."""
    host = timeline.host
    inputs = _inputs(timeline)
    op, module, costed = links.op[rows], links.module[rows], costs.op[rows]
    source = np.where(costed >= 0, costed, op)
    key = combined(
        timeline.gpu.name[rows],
        values_at(host.name, op, -1),
        values_at(host.name, module, -1),
        inputs[values_at(host.args, source, -1)],
        timeline.gpu.device[rows],
        # A copy is no kernel, even where a kernel has taken its name.
        timeline.gpu.kind[rows],
    )
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return group.astype(np.int64), first.astype(np.int64)


def _inputs(timeline: Timeline) -> I64:
    """A number for each distinct (dims, types) of the args table; the last entry stands for no args."""
    table: dict[tuple[bytes, bytes], int] = {}
    numbers = [table.setdefault((a.dims, a.types), len(table)) for a in timeline.op_args]
    return np.array([*numbers, -1], np.int64)


class _Maker:
    def __init__(
        self,
        timeline: Timeline,
        links: Links,
        costs: LaunchCosts,
        kernels: Mapping[int, KernelName],
        roofs: Sequence[Roofs],
    ) -> None:
        self._timeline, self._links, self._costs = timeline, links, costs
        self._kernels, self._roofs = kernels, roofs

    def group(self, rows: I64) -> Group:
        """The group of these launches, the earliest of which speaks for their common traits."""
        timeline, gpu, first = self._timeline, self._timeline.gpu, int(rows[0])
        name = self._kernels[int(gpu.name[first])]
        device = int(gpu.device[first])
        costs = self._costed(rows)
        flops, size, link = (_total([(getattr(c, f), n) for c, n in costs]) for f in _AMOUNTS)
        work = _work(costs[0][0], name, [None if t is None else t / rows.size for t in (flops, size, link)])
        mean = typical = bound(work, self._roofs[device])
        if self._own_sizes(first) and len(costs) > 1:
            each = [c for c, n in costs for _ in range(n)]
            typical = bound(_work(costs[0][0], name, _medians(each)), self._roofs[device])
        dims, types = self._dims(first)
        durations = np.sort(gpu.end[rows] - gpu.start[rows])
        return Group(
            rows=rows,
            name=name,
            kind=int(gpu.kind[first]),
            device=device,
            op=self._host_name(self._links.op[first]),
            module=self._host_name(self._links.module[first]),
            dims=dims,
            types=types,
            shape=timeline.shape(first),
            durations=durations,
            flops=flops,
            bytes=size,
            origin=max((c.origin for c, _ in costs), key=_ORIGIN_ORDER.index),
            cost=costs[0][0],
            work=work,
            bound=typical,
            total_bound_ns=None if mean.bound_ns is None else mean.bound_ns * rows.size,
        )

    def _own_sizes(self, row: int) -> bool:
        """Copies and collectives record their own size, launch by launch; others have their op's."""
        gpu = self._timeline.gpu
        return bool(gpu.kind[row] != GpuKind.KERNEL or gpu.comm[row] >= 0)

    def _costed(self, rows: I64) -> list[tuple[Cost, int]]:
        """The distinct costs of the launches and how often each occurs, that of the first launch first."""
        index = self._costs.index[rows]
        if index.min() == index.max():
            return [(self._costs.costs[index[0]], index.size)]
        counts = Counter(index.tolist())
        return [(self._costs.costs[i], n) for i, n in counts.items()]

    def _host_name(self, row: int) -> str | None:
        return None if row < 0 else self._timeline.names[self._timeline.host.name[row]]

    def _dims(self, row: int) -> tuple[str | None, str | None]:
        op = int(self._costs.op[row])
        op = int(self._links.op[row]) if op < 0 else op
        args = int(self._timeline.host.args[op]) if op >= 0 else -1
        if args < 0:
            return None, None
        recorded = self._timeline.op_args[args]
        return _text(recorded.dims), _text(recorded.types)


def _text(raw: bytes) -> str | None:
    return " ".join(raw.decode("utf-8", "backslashreplace").split()) if raw else None


def _total(values: list[tuple[int | None, int]]) -> int | None:
    """The sum over all launches of (amount, times); unknown when it is unknown for any of them."""
    known = [amount * times for amount, times in values if amount is not None]
    return sum(known) if len(known) == len(values) else None


def _medians(costs: Sequence[Cost]) -> list[float | None]:
    """FLOPs, bytes and link bytes of the median launch; unknown when unknown for any."""
    columns = zip(*((c.flops, c.bytes, c.link_bytes) for c in costs), strict=True)
    return [_median([v for v in column if v is not None], len(costs)) for column in columns]


def _median(known: Sequence[float], count: int) -> float | None:
    return float(np.median(known)) if len(known) == count else None


def _work(cost: Cost, name: KernelName, amounts: Sequence[float | None]) -> Work:
    flops, size, link = amounts
    dtype, told = math_type(cost, name)
    return Work(
        flops=flops,
        bytes=size,
        link_bytes=link,
        dtype=dtype,
        matrix=cost.matrix,
        math_known=told,
        over_pcie=name.family == "memcpy" and "PtoP" not in name.name,
    )


def math_type(cost: Cost, name: KernelName) -> tuple[str | None, bool]:
    """The type that the arithmetic runs in, and whether the kernel's name told it.

    The name knows better than the operands for fp32 matrix work, which may run as TF32.
    """
    told = (name.compute_dtype or name.dtype or "").partition("->")[0]
    if cost.matrix and told in _MATRIX_TYPES and cost.dtype in (None, "fp32"):
        return told, True
    if cost.dtype is None and told in _MATRIX_TYPES:
        return told, True
    return cost.dtype, False
