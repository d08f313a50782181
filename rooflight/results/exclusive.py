"""The time that each kernel group has for itself: the parts of DEFINITIONS §16, split by group.

An instant at which several run belongs to one: of kernels to the first in the order of the regimes and then
of the start, what only communication or only copies fill to the first that started.  So the groups of a part
add up to the part, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import Set, cut
from rooflight.protocol import Kernel
from rooflight.regimes.ownership import Owned, owned, summed_by
from rooflight.regimes.partition import Partition
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, Mask, distinct
from rooflight.trace.timeline import Timeline
from rooflight.units import us


class Depth:
    """How many of the windows [start, end) hold an instant; an instant of two counts in each."""

    def __init__(self, start: I64, end: I64) -> None:
        # One border at least, before which there is no window.
        self._at = distinct(np.concatenate((start, end, np.zeros(1, np.int64))))
        begun = np.searchsorted(np.sort(start), self._at, side="right")
        over = np.searchsorted(np.sort(end), self._at, side="right")
        self._depth: I64 = begun - over
        passed = np.diff(self._at) * self._depth[:-1]
        self._before: I64 = np.concatenate((np.zeros(1, np.int64), np.cumsum(passed)))

    def at(self, t: I64) -> I64:
        """The number of windows that hold each instant."""
        place = np.searchsorted(self._at, t, side="right") - 1
        return np.where(place < 0, 0, self._depth[place])

    def within(self, start: I64, end: I64) -> I64:
        """The length of each interval, every instant as often as windows hold it, in ns."""
        return self._until(end) - self._until(start)

    def _until(self, t: I64) -> I64:
        place = np.maximum(np.searchsorted(self._at, t, side="right") - 1, 0)
        beyond = np.maximum(t - self._at[place], 0)
        amount: I64 = self._before[place] + self._depth[place] * beyond
        return amount


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Row-aligned with the groups: ns over the whole recording and within the steps, and the launches
    that start within the steps."""

    whole_ns: I64
    steps_ns: I64
    steps_count: I64


def exclusive(
    timeline: Timeline, groups: Groups, partitions: Iterable[Partition], is_comm: Mask, start: I64, end: I64
) -> Exclusive:
    """What each group has; the steps are [start, end).  ``is_comm`` is row-aligned with the GPU events."""
    n, depth = len(groups.rows), Depth(start, end)
    whole, steps = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for p in partitions:
        for owners in _owners(timeline, groups, p, is_comm):
            whole += owners.by_owner(n)
            steps += summed_by(owners.owner, depth.within(owners.start, owners.end), n)
    rows = timeline.valid_gpu
    of_event = groups.of_event[rows].astype(np.int64)
    return Exclusive(whole, steps, summed_by(of_event, depth.at(timeline.gpu.start[rows]), n))


def with_exclusive(rows: Sequence[Kernel], place: Sequence[int], found: Exclusive, *, steps: bool) -> None:
    """Give the rows of the table their time; ``place`` is the row of each group.  Without ``steps`` what is
    within them stays unknown."""
    whole, within, count = (c.tolist() for c in (found.whole_ns, found.steps_ns, found.steps_count))
    for group, row in enumerate(place):
        kernel = rows[row]
        kernel.exclusive_us = us(whole[group])
        if steps:
            kernel.steps_exclusive_us, kernel.steps_count = us(within[group]), count[group]


def _owners(timeline: Timeline, groups: Groups, p: Partition, is_comm: Mask) -> list[Owned]:
    of, gpu, rows = groups.of_event.astype(np.int64), timeline.gpu, timeline.valid_gpu
    rows = timeline.settled(rows[gpu.device[rows] == p.device])
    copies = rows[gpu.kind[rows] != GpuKind.KERNEL]
    kernels = Owned(p.kernels.start, p.kernels.end, of[p.kernels.owner])
    return [
        kernels,
        _exposed(timeline, of, rows[is_comm[rows]], p.communication),
        _exposed(timeline, of, copies, p.copies),
    ]


def _exposed(timeline: Timeline, of: I64, rows: I64, where: Set) -> Owned:
    pieces, owner = exposed(timeline, rows, where)
    return Owned(pieces[:, 0], pieces[:, 1], of[owner])


def exposed(timeline: Timeline, rows: I64, where: Set) -> tuple[Set, I64]:
    """The exposed instants of events of one kind, each with the event that has it: the first that started."""
    gpu = timeline.gpu
    own = owned(gpu.start[rows], gpu.end[rows], np.zeros(rows.size, np.int64))
    pieces, at = cut(where, own.start, own.end)
    return pieces, rows[own.owner[at]]
