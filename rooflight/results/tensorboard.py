"""A step's time in the eight classes of the TensorBoard plugin of torch's profiler, which is no longer made.

For those who compare with its pages; what it leaves open is told in docs/regimes.md.  Each instant of a step
belongs to the first class that has any event then, on any thread, stream or device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import EMPTY, Clipper, Set, difference, union, union_of
from rooflight.attribution.launches import Links, link
from rooflight.attribution.steps import StepSpan, find_steps
from rooflight.kernels import is_communication
from rooflight.trace.tables import I64, GpuKind, HostKind, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import us

#: In the order in which an instant is given away.
CLASSES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other")
#: A last step with fewer events on the device than this share of those of the one before was not shown.
_TAIL = 0.8


@dataclass(frozen=True, slots=True)
class TensorboardStep:
    """One step; the eight classes add up to ``step_time_us``, to the nanosecond.

    The plugin begins a step no earlier than the last one ends, and ends it with the last work that it
    launched.  ``n`` is ``None`` for a recording without steps, whose host ops are then taken as one;
    ``shown`` tells whether the plugin would show it: it left out a last step with too little work.
    ``events`` is how much work on the device it launched.
    """

    n: int | None
    shown: bool
    events: int
    start_us: float
    step_time_us: float
    kernel_us: float
    memcpy_us: float
    memset_us: float
    communication_us: float
    runtime_us: float
    dataloader_us: float
    cpu_exec_us: float
    other_us: float


@dataclass(frozen=True, slots=True)
class _Windows:
    """The steps as the plugin cuts them; ``events`` is how much device work each launched."""

    numbers: Sequence[int | None]
    start: I64
    end: I64
    events: I64


def tensorboard_view(timeline: Timeline) -> list[TensorboardStep]:
    """The steps of a recording as the plugin would split them, in the order of their start.

    Nothing of it enters an analysis.  Empty for a recording without steps and without host ops.
    """
    windows = _windows(timeline, link(timeline), find_steps(timeline))
    length, left = windows.end - windows.start, windows.end - windows.start
    parts: list[I64] = []
    for instants in _exclusive(timeline):
        parts.append(Clipper(instants).within(windows.start, windows.end))
        left = left - parts[-1]
    columns = [windows.start, length, *parts, left]
    kept = _kept(windows.events)
    rows = zip(windows.numbers, windows.events.tolist(), *(c.tolist() for c in columns), strict=True)
    return [
        TensorboardStep(n, i < kept, events, *(us(ns) for ns in times))
        for i, (n, events, *times) in enumerate(rows)
    ]


def _exclusive(timeline: Timeline) -> list[Set]:
    """The instants of each class but the last, less those of the classes before it."""
    taken, found = EMPTY, []
    for instants in _classes(timeline):
        found.append(difference(instants, taken))
        taken = union_of(taken, instants)
    return found


def _classes(timeline: Timeline) -> list[Set]:
    gpu, host, rows = timeline.gpu, timeline.host, timeline.valid_gpu
    kind, name = gpu.kind[rows], gpu.name[rows]
    comm = (kind == GpuKind.KERNEL) & (_named(timeline, is_communication)[name] | (gpu.comm[rows] >= 0))
    ops = np.isin(host.kind, (HostKind.CPU_OP, HostKind.ANNOTATION))
    named = {
        "collective": ops & _named(timeline, _is_collective)[host.name],
        "loader": ops & _named(timeline, _is_loader)[host.name],
        "step": ops & _named(timeline, lambda n: n.startswith("ProfilerStep"))[host.name],
    }
    rest = ops & ~named["collective"] & ~named["loader"] & ~named["step"]

    def on_device(which: Mask) -> Set:
        return union(gpu.start[rows[which]], gpu.end[rows[which]])

    def on_host(which: Mask) -> Set:
        return union(host.start[which], host.end[which])

    return [
        on_device((kind == GpuKind.KERNEL) & ~comm),
        on_device(kind == GpuKind.MEMCPY),
        on_device(kind == GpuKind.MEMSET),
        union_of(on_device(comm), on_host(named["collective"])),
        on_host(host.kind == HostKind.RUNTIME),
        on_host(named["loader"]),
        on_host(rest),
    ]


def _is_collective(name: str) -> bool:
    return name.startswith(("nccl:", "gloo:"))


def _is_loader(name: str) -> bool:
    of_loader = name.startswith("enumerate(DataLoader)#") and name.endswith(".__next__")
    return of_loader or name.startswith("enumerate(DataPipe)#")


def _windows(timeline: Timeline, links: Links, steps: Sequence[StepSpan]) -> _Windows:
    spans = sorted(steps, key=lambda s: (s.start, s.end))
    if not spans:
        return _whole(timeline)
    start, end = (np.array([getattr(s, f) for s in spans], np.int64) for f in ("start", "end"))
    rows = timeline.valid_gpu
    step = _launching(timeline, links, rows, start, end)
    events = np.bincount(step[step >= 0], minlength=len(spans)).astype(np.int64)
    if events.any():
        start, end = _on_device(timeline, rows, step, start, end)
    return _Windows([s.n for s in spans], start, end, events)


def _launching(timeline: Timeline, links: Links, rows: I64, start: I64, end: I64) -> I64:
    """The step that holds the whole call that launched each event; -1 for none."""
    launch = links.launch[rows]
    begun, over = timeline.host.start[launch], timeline.host.end[launch]
    step = np.searchsorted(start, begun, side="right") - 1
    inside = (launch >= 0) & (step >= 0)
    inside[inside] &= over[inside] <= end[step[inside]]
    return np.where(inside, step, -1)


def _on_device(timeline: Timeline, rows: I64, step: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """The steps drawn out to the work that they launched, none before the end of the last."""
    gpu, mine = timeline.gpu, step >= 0
    first, last = np.full(start.size, np.iinfo(np.int64).max), np.full(start.size, np.iinfo(np.int64).min)
    np.minimum.at(first, step[mine], gpu.start[rows[mine]])
    np.maximum.at(last, step[mine], gpu.end[rows[mine]])
    before = gpu.end[rows[~mine]]
    floor = int(start[0])
    if mine.any() and (step == 0).any():
        floor = int(before[before < first[0]].max(initial=floor))
    reach = np.maximum(end, last)
    # A step ends no earlier than it begins, and begins where the one before ended.
    reach = np.maximum(np.maximum.accumulate(reach), floor)
    begins = np.maximum(start, np.concatenate(([floor], reach[:-1])))
    return begins, np.maximum(reach, begins)


def _whole(timeline: Timeline) -> _Windows:
    host, none = timeline.host, np.empty(0, np.int64)
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    if ops.size == 0:
        return _Windows([], none, none, none)
    start, end = host.start[ops].min(keepdims=True), host.end[ops].max(keepdims=True)
    return _Windows([None], start, end, np.array([timeline.valid_gpu.size], np.int64))


def _kept(events: I64) -> int:
    """How many steps the plugin shows: up to the last with work on the device, that one only if it has
    nearly as much as the one before."""
    with_work = np.flatnonzero(events)
    if events.size < 2 or with_work.size == 0:
        return int(events.size)
    last = int(with_work[-1])
    return last if last and events[last - 1] * _TAIL > events[last] else last + 1


def _named(timeline: Timeline, wanted: Callable[[str], bool]) -> Mask:
    return np.array([*(wanted(n) for n in timeline.names), False], bool)
