"""Where the time goes: exclusive parts of each step's wall time, in integer ns (DEFINITIONS §16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rooflight.attribution.idle import HostActivity, Idle, idle_causes
from rooflight.attribution.intervals import Clipper, Set, difference, union, union_of
from rooflight.attribution.launches import Links
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import KERNEL_PARTS, PARTS
from rooflight.regimes.ownership import Owned, owned
from rooflight.trace.tables import I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline

#: Rank of the part of a kernel that is not communication.
RANK = {part: i for i, part in enumerate(KERNEL_PARTS)}


@dataclass(frozen=True, slots=True)
class Partition:
    """The parts of one device over any windows, and who owns its kernel time.

    ``busy`` is the union of all GPU work, ``communication`` and ``copies`` the exposed ones; ``kernels``
    gives each instant of kernel time to a row of ``timeline.gpu``; ``idle`` tells why there was none.
    """

    device: int
    busy: Clipper
    kernels: Owned
    communication: Set
    copies: Set
    idle: Idle
    _sets: Mapping[str, Clipper]
    _instants: Mapping[str, Set]

    def instants(self, part: str) -> Set:
        """The instants of one part, sorted and disjoint."""
        return self._instants[part]

    def of(self, part: str) -> Clipper:
        """The instants of one part."""
        return self._sets[part]

    def parts(self, start: I64, end: I64) -> list[dict[str, int]]:
        """Ns of each part within each window [start, end); they sum to its length inside the recording."""
        columns = [self._sets[part].within(start, end).tolist() for part in PARTS]
        return [dict(zip(PARTS, row, strict=True)) for row in zip(*columns, strict=True)]


def partition(
    timeline: Timeline,
    links: Links,
    steps: Sequence[StepSpan],
    device: int,
    rank: I64,
    is_comm: Mask,
    window: tuple[int, int],
    activity: HostActivity,
) -> Partition:
    """Cut the recording of ``device`` into parts.

    ``rank`` gives the part of every GPU row that is a kernel (see ``RANK``), ``is_comm`` tells
    communication; both are row-aligned with ``timeline.gpu``.  ``window`` is the whole recording.
    """
    gpu = timeline.gpu
    rows = timeline.valid_gpu
    rows = timeline.settled(rows[gpu.device[rows] == device])
    is_kernel = gpu.kind[rows] == GpuKind.KERNEL
    work, comm, copies = rows[is_kernel & ~is_comm[rows]], rows[is_comm[rows]], rows[~is_kernel]
    own = owned(gpu.start[work], gpu.end[work], rank[work])
    kernels = Owned(own.start, own.end, work[own.owner])
    parts = {name: _where(kernels, rank[kernels.owner] == r) for name, r in RANK.items()}
    running = union(kernels.start, kernels.end)
    communicating, copying = _spans(timeline, comm), _spans(timeline, copies)
    parts["communication"] = difference(communicating, running)
    parts["copy"] = difference(copying, union_of(running, communicating))
    busy = union_of(running, communicating, copying)
    idle = idle_causes(timeline, links, rows, busy, window, steps, activity)
    parts |= idle.causes
    clippers = {name: Clipper(s) for name, s in parts.items()}
    communication, copy = parts["communication"], parts["copy"]
    return Partition(device, Clipper(busy), kernels, communication, copy, idle, clippers, parts)


def _where(k: Owned, which: Mask) -> Set:
    return union(k.start[which], k.end[which])


def _spans(timeline: Timeline, rows: I64) -> Set:
    return union(timeline.gpu.start[rows], timeline.gpu.end[rows])
