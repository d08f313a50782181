"""Kernel groups: the rows of the kernel table (DEFINITIONS §15).

A group is same name, op, module, input dims and types, device.  Its time is the median of its
launches; its work is that of one launch; bound and regime are decided once, and every launch has them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from msgspec import Struct

from rooflight.attribution.hosts import LOCAL, hosts_of_comms
from rooflight.attribution.launches import Links
from rooflight.cost.launches import LaunchCosts
from rooflight.cost.model import INFERRED, MEASURED, MODELLED, UNKNOWN, Cost
from rooflight.kernels import KernelName
from rooflight.protocol import Roofs
from rooflight.roofline.bounds import Bound, Ceilings, Work
from rooflight.trace.tables import (
    I32,
    I64,
    GpuKind,
    Mask,
    combined,
    in_order_of,
    numbered,
    sorted_within,
    values_at,
)
from rooflight.trace.timeline import LaunchShape, Timeline

_ORIGIN_ORDER = (MEASURED, MODELLED, INFERRED, UNKNOWN)
_MATRIX_TYPES = frozenset({"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4"})


class Group(Struct, frozen=True, gc=False):
    """One row: its launches (rows of ``timeline.gpu``), what they are, their work and bound.

    ``durations`` are those of the launches in ns, shortest first (not aligned with ``rows``).
    ``total_ns``, ``flops`` and ``bytes`` are totals over the launches; ``work`` is that of one.  ``t_ns``
    is the median launch and ``bound`` that of the median work: copies of one row may differ a thousandfold
    in size, and the mean size over the median time is a rate that no launch had.  ``total_bound_ns`` is of
    all; ``origin`` and ``reason`` are those of the launch that is known least.
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
    t_ns: float
    total_ns: int
    flops: int | None
    bytes: int | None
    origin: str
    reason: str
    cost: Cost
    work: Work
    bound: Bound
    total_bound_ns: float | None


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
    gpu, rows = timeline.gpu, timeline.valid_gpu
    of_row, first = _keys(timeline, links, costs, rows)
    of_event = np.full(len(gpu), -1, np.int32)
    of_event[rows] = of_row
    if first.size == 0:
        return Groups((), of_event)
    maker = _Maker(timeline, links, costs, kernels, roofs, _members(timeline, rows, of_row))
    return Groups(tuple(maker.group(i) for i in range(first.size)), of_event)


@dataclass(frozen=True, slots=True)
class _Members:
    """The events of all groups, group by group, the earliest first; where each group begins, and the last
    one ends; the lengths of each group's events in ns, shortest first."""

    rows: I64
    borders: I64
    durations: I64


def _members(timeline: Timeline, rows: I64, of_row: I64) -> _Members:
    gpu = timeline.gpu
    length = gpu.end[rows] - gpu.start[rows]
    order = in_order_of(of_row, gpu.start[rows])
    borders = np.searchsorted(of_row[order], np.arange(int(of_row.max()) + 2))
    _settle_ties(timeline, rows, order, borders)
    return _Members(rows[order], borders, sorted_within(of_row, length))


def _settle_ties(timeline: Timeline, rows: I64, order: I64, borders: I64) -> None:
    """Of the earliest events of a group that start together put the one in front, in place, that ends first
    and then goes by what it is: it speaks for the group, whatever the order in the file."""
    gpu, front, sizes = timeline.gpu, borders[:-1], np.diff(borders)
    start = gpu.start[rows[order]]
    at = np.flatnonzero(start == np.repeat(start[front], sizes))
    if at.size == sizes.size:
        return
    group, tied = np.repeat(np.arange(sizes.size), sizes)[at], rows[order[at]]
    what = (gpu.comm[tied], gpu.shape[tied], gpu.graph_node[tied], gpu.correlation[tied])
    at = at[np.lexsort((*what, gpu.end[tied], group))]
    speaker = at[np.unique(group, return_index=True)[1]]
    order[front], order[speaker] = order[speaker], order[front]


def _local(timeline: Timeline, members: _Members) -> Mask:
    """Of each group, whether what crosses a link surely stays on the host: copies do, collectives where the
    ranks of all launches are known to be on one."""
    rows, gpu = members.rows, timeline.gpu
    stays = (gpu.kind[rows] != GpuKind.KERNEL) | (hosts_of_comms(timeline)[gpu.comm[rows]] == LOCAL)
    return np.logical_and.reduceat(stays, members.borders[:-1])


def _keys(timeline: Timeline, links: Links, costs: LaunchCosts, rows: I64) -> tuple[I64, I64]:
    """The group number of each row, by first appearance of the combined key."""
    host = timeline.host
    op, module, costed = links.op[rows], links.module[rows], costs.op[rows]
    source = np.where(costed >= 0, costed, op)
    key = combined(
        timeline.gpu.name[rows],
        values_at(host.name, op, -1),
        values_at(host.name, module, -1),
        timeline.inputs[values_at(host.args, source, -1)],
        timeline.gpu.device[rows],
        # A copy is no kernel, even where a kernel has taken its name.
        timeline.gpu.kind[rows],
    )
    first, group = numbered(key)
    return group, first


class _Maker:
    """What the groups are, in columns with an entry for each; the earliest launch speaks for its group."""

    def __init__(
        self,
        timeline: Timeline,
        links: Links,
        costs: LaunchCosts,
        kernels: Mapping[int, KernelName],
        roofs: Sequence[Roofs],
        members: _Members,
    ) -> None:
        gpu, host, first = timeline.gpu, timeline.host, members.rows[members.borders[:-1]]
        op, costed = links.op[first], costs.op[first]
        self._timeline, self._members = timeline, members
        self._costs, self._kernels = costs, kernels
        self._roofs = [Ceilings(r) for r in roofs]
        self._borders: list[int] = members.borders.tolist()
        self._name: list[int] = gpu.name[first].tolist()
        self._kind: list[int] = gpu.kind[first].tolist()
        self._device: list[int] = gpu.device[first].tolist()
        self._shape: list[int] = gpu.shape[first].tolist()
        self._op: list[int] = values_at(host.name, op, -1).tolist()
        self._module: list[int] = values_at(host.name, links.module[first], -1).tolist()
        self._args: list[int] = values_at(host.args, np.where(costed >= 0, costed, op), -1).tolist()
        index = costs.index[members.rows]
        self._cost: list[int] = index[members.borders[:-1]].tolist()
        lowest = np.minimum.reduceat(index, members.borders[:-1])
        self._alike: list[bool] = (lowest == np.maximum.reduceat(index, members.borders[:-1])).tolist()
        starts, ends, ordered = members.borders[:-1], members.borders[1:], members.durations
        middle = (ends - starts) // 2
        self._median: list[float] = ((ordered[starts + middle] + ordered[ends - middle - 1]) / 2).tolist()
        self._total: list[int] = np.add.reduceat(ordered, starts).tolist()
        self._local: list[bool] = _local(timeline, members).tolist()
        self._shapes: dict[int, LaunchShape | None] = {-1: None}

    def group(self, i: int) -> Group:
        """The group of this number."""
        begin, end = self._borders[i], self._borders[i + 1]
        rows, count = self._members.rows[begin:end], end - begin
        name, roofs = self._kernels[self._name[i]], self._roofs[self._device[i]]
        costs = self._costed(i, rows)
        flops, size, link = _totals(costs)
        weakest = _weakest(costs)
        local, means = self._local[i], [None if t is None else t / count for t in (flops, size, link)]
        work = _work(costs[0][0], name, means, local)
        mean = typical = roofs.bound(work)
        if len(costs) > 1:
            # Copies and collectives have sizes of their own, and what one op launches may have several.
            typical = roofs.bound(_work(costs[0][0], name, _medians(costs), local))
        dims, types = self._dims(i)
        return Group(
            rows=rows,
            name=name,
            kind=self._kind[i],
            device=self._device[i],
            op=self._host_name(self._op[i]),
            module=self._host_name(self._module[i]),
            dims=dims,
            types=types,
            shape=self._launch_shape(self._shape[i]),
            durations=self._members.durations[begin:end],
            t_ns=self._median[i],
            total_ns=self._total[i],
            flops=flops,
            bytes=size,
            origin=weakest.origin,
            reason=weakest.reason,
            cost=costs[0][0],
            work=work,
            bound=typical,
            total_bound_ns=None if mean.bound_ns is None else mean.bound_ns * count,
        )

    def _costed(self, i: int, rows: I64) -> list[tuple[Cost, int]]:
        """The distinct costs of the launches and how often each occurs, that of the first launch first."""
        costs = self._costs.costs
        if self._alike[i]:
            return [(costs[self._cost[i]], rows.size)]
        return [(costs[at], n) for at, n in Counter(self._costs.index[rows].tolist()).items()]

    def _host_name(self, name: int) -> str | None:
        return None if name < 0 else self._timeline.names[name]

    def _launch_shape(self, index: int) -> LaunchShape | None:
        if index not in self._shapes:
            self._shapes[index] = self._timeline.launch_shape(index)
        return self._shapes[index]

    def _dims(self, i: int) -> tuple[str | None, str | None]:
        if self._args[i] < 0:
            return None, None
        recorded = self._timeline.op_args[self._args[i]]
        return _text(recorded.dims), _text(recorded.types)


def _text(raw: bytes) -> str | None:
    return raw.decode("utf-8", "backslashreplace") if raw else None


def _weakest(costs: Sequence[tuple[Cost, int]]) -> Cost:
    if len(costs) == 1:
        return costs[0][0]
    return max((c for c, _ in costs), key=lambda c: _ORIGIN_ORDER.index(c.origin))


def _totals(costs: Sequence[tuple[Cost, int]]) -> tuple[int | None, int | None, int | None]:
    """FLOPs, bytes and link bytes of all launches; each unknown when it is unknown for any of them."""
    if len(costs) == 1:
        [(cost, n)] = costs
        return _times(cost.flops, n), _times(cost.bytes, n), _times(cost.link_bytes, n)
    return (
        _total([(c.flops, n) for c, n in costs]),
        _total([(c.bytes, n) for c, n in costs]),
        _total([(c.link_bytes, n) for c, n in costs]),
    )


def _times(amount: int | None, n: int) -> int | None:
    return None if amount is None else amount * n


def _total(values: list[tuple[int | None, int]]) -> int | None:
    total = 0
    for amount, times in values:
        if amount is None:
            return None
        total += amount * times
    return total


def _medians(costs: Sequence[tuple[Cost, int]]) -> list[float | None]:
    """FLOPs, bytes and link bytes of the median launch; each unknown when it is unknown for any."""
    return [
        _median([(c.flops, n) for c, n in costs]),
        _median([(c.bytes, n) for c, n in costs]),
        _median([(c.link_bytes, n) for c, n in costs]),
    ]


def _median(counted: Sequence[tuple[int | None, int]]) -> float | None:
    """The median of values that occur so often each."""
    known = sorted((v, n) for v, n in counted if v is not None)
    if len(known) < len(counted):
        return None
    ends = list(accumulate(n for _, n in known))
    low, high = (known[bisect_right(ends, at)][0] for at in ((ends[-1] - 1) // 2, ends[-1] // 2))
    return (low + high) / 2


def _work(cost: Cost, name: KernelName, amounts: Sequence[float | None], local: bool) -> Work:
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
        link_known=local,
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
