"""What a rule may look at: one recording with its parts, seen from the headline device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rooflight.attribution.intervals import Clipper, Set, intersection, measure, union, union_of
from rooflight.attribution.launches import Links
from rooflight.attribution.steps import StepSpan
from rooflight.cost.launches import LaunchCosts
from rooflight.protocol import PARTS, Flag, Roofs
from rooflight.regimes.kernels import Verdict
from rooflight.regimes.ownership import Owned
from rooflight.regimes.partition import Partition
from rooflight.roofline.groups import Group, Groups
from rooflight.trace.tables import I64, GpuKind, Mask, distinct, in_order_of, values_at
from rooflight.trace.timeline import Timeline

_LABEL = 60


@dataclass(frozen=True)
class Facts:
    """``spans`` are the counted steps, none where the whole recording (``window``, in ns) stands for them;
    ``groups`` and ``verdicts`` are row-aligned; ``roofs`` those of the device of ``partition``."""

    timeline: Timeline
    links: Links
    costs: LaunchCosts
    groups: Groups
    verdicts: Sequence[Verdict]
    partition: Partition
    spans: Sequence[StepSpan]
    window: tuple[int, int]
    roofs: Roofs
    flags: Sequence[Flag] = ()

    @cached_property
    def windows(self) -> Set:
        """The counted time: the union of the steps, else the whole recording."""
        spans = [(s.start, s.end) for s in self.spans] or [self.window]
        both = np.array(spans, np.int64)
        return union(both[:, 0], both[:, 1])

    @property
    def counted(self) -> int:
        """How many steps a mean is over; 1 for a recording without steps."""
        return max(1, len(self.spans))

    @cached_property
    def wall_ns(self) -> int:
        return int((self.windows[:, 1] - self.windows[:, 0]).sum())

    @cached_property
    def parts(self) -> dict[str, int]:
        """Ns of each part of the counted time, on this device."""
        rows = self.partition.parts(self.windows[:, 0], self.windows[:, 1])
        return {part: sum(row[part] for row in rows) for part in PARTS}

    @cached_property
    def parts_by_step(self) -> list[dict[str, int]]:
        """Ns of each part of each step; one entry for a recording without steps."""
        spans = [(s.start, s.end) for s in self.spans] or [self.window]
        both = np.array(spans, np.int64)
        return self.partition.parts(both[:, 0], both[:, 1])

    @cached_property
    def _owned(self) -> Owned:
        """The counted kernel time of this device, instant by instant with the kernel that has it."""
        return self.partition.kernels.within(self.windows)

    @cached_property
    def own_ns(self) -> I64:
        """Row-aligned with ``timeline.gpu``: the counted instants of kernel time that each kernel has."""
        return self._owned.by_owner(len(self.timeline.gpu))

    def instants(self, rows: I64) -> Set:
        """The counted instants of kernel time that these kernels have."""
        mine = np.zeros(len(self.timeline.gpu), bool)
        mine[rows] = True
        return self._owned.of(mine)

    def instants_of(self, groups: Iterable[int]) -> Set:
        """The counted instants of kernel time that these groups have."""
        mine = np.zeros(len(self.groups.rows) + 1, bool)
        mine[list(groups)] = True
        # Index -1, of events in no group, is the last entry.
        return self._owned.of(mine[self.groups.of_event])

    def idle(self, *parts: str) -> Set:
        """The counted instants of these parts of the device's time."""
        return union_of(*(intersection(self.partition.instants(part), self.windows) for part in parts))

    @cached_property
    def _group_ns(self) -> list[int]:
        of, own = self.groups.of_event, self.own_ns
        sums = np.zeros(len(self.groups.rows), np.int64)
        np.add.at(sums, of[of >= 0], own[of >= 0])
        found: list[int] = sums.tolist()
        return found

    def group_ns(self, group: int) -> int:
        """The counted instants of kernel time that this group has."""
        return self._group_ns[group]

    def launches(self, group: int) -> int:
        """How many launches of the group begin in the counted time."""
        return int(self.begins(self.groups.rows[group].rows).sum())

    def begins(self, rows: I64) -> Mask:
        """Which of these GPU events begin in the counted time."""
        return self.counted_instants(self.timeline.gpu.start[rows])

    def counted_instants(self, at: I64) -> Mask:
        """Which of these instants are of the counted time."""
        inside: Mask = Clipper(self.windows).within(at, at + 1) > 0
        return inside

    def kernels(self) -> Iterator[tuple[int, Group, Verdict]]:
        """The kernel groups of this device that have counted time, with their places."""
        return iter(self._kernels)

    @cached_property
    def _kernels(self) -> list[tuple[int, Group, Verdict]]:
        return list(self._counted_kernels())

    def _counted_kernels(self) -> Iterator[tuple[int, Group, Verdict]]:
        for i, (group, verdict) in enumerate(zip(self.groups.rows, self.verdicts, strict=True)):
            mine = group.kind == GpuKind.KERNEL and group.device == self.partition.device
            if mine and self.group_ns(i) > 0:
                yield i, group, verdict

    def excess_ns(self, group: int) -> float:
        """Counted time of the group above what its roofs ask for; 0 where its bound is unknown.

        Launches of one group may differ in size: their bounds and times are compared in total.
        """
        g, verdict = self.groups.rows[group], self.verdicts[group]
        if verdict.regime == "unknown" or g.total_bound_ns is None or g.total_ns <= 0:
            return 0.0
        return self.group_ns(group) * max(0.0, 1 - g.total_bound_ns / g.total_ns)

    def most(self, groups: Iterable[int], n: int = 5) -> tuple[int, ...]:
        """The ``n`` groups with the most counted time, largest first."""
        return tuple(sorted(groups, key=lambda i: (-self.group_ns(i), i))[:n])

    def most_of(self, rows: I64) -> tuple[int, ...]:
        """The groups of these GPU events with the most counted time, largest first."""
        return self.most(distinct(self.groups.of_event[rows]).tolist())

    def longest(self, rows: I64, n: int = 5) -> tuple[int, ...]:
        """The groups of these GPU events that ran longest, whatever ran beside, longest first."""
        found = distinct(self.groups.of_event[rows]).tolist()
        return tuple(sorted(found, key=lambda i: (-self.groups.rows[i].total_ns, i))[:n])

    def steps_with_most(self, *parts: str, n: int = 3) -> tuple[int, ...]:
        """Numbers of the steps that hold most of these parts, largest first."""
        amounts = [sum(p[part] for part in parts) for p in self.parts_by_step]
        order = sorted(range(len(self.spans)), key=lambda i: (-amounts[i], i))
        return tuple(self.spans[i].n for i in order[:n] if amounts[i] > 0)

    def label(self, group: int) -> str:
        """What the group is, short: its op, else its kernel."""
        g = self.groups.rows[group]
        name = g.op or g.name.short_name
        return name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"

    def share(self, ns: float) -> str:
        """A share of the counted time, as text."""
        return f"{100 * ns / self.wall_ns:.0f} %" if self.wall_ns else "–"

    def each(self, ns: float) -> str:
        """The mean per counted step, as text; without steps the whole."""
        return f"{ns / self.counted / 1e6:.3g} ms{' per step' if self.spans else ''}"

    def times(self, n: int) -> str:
        """How often, as text: per counted step, without steps in all."""
        return f"{n / self.counted:.3g} per step" if self.spans else f"{n} times"

    def exposed(self, rows: I64, part: str) -> Set:
        """Counted instants in which these GPU events run and the device's time is in ``part``."""
        gpu = self.timeline.gpu
        return intersection(union(gpu.start[rows], gpu.end[rows]), self.idle(part))

    def exposed_ns(self, rows: I64, part: str) -> int:
        """How many ns :meth:`exposed` holds."""
        return measure(self.exposed(rows, part))

    def rows(self, wanted: Mask) -> I64:
        """The valid GPU events of this device among ``wanted`` (row-aligned with ``timeline.gpu``)."""
        valid = self.timeline.valid_gpu
        found: I64 = valid[(self.timeline.gpu.device[valid] == self.partition.device) & wanted[valid]]
        return found

    @cached_property
    def kernel_rows(self) -> I64:
        """The kernels of this device that have counted time, in the order of their streams and starts."""
        gpu = self.timeline.gpu
        rows = self.rows(gpu.kind == np.int8(GpuKind.KERNEL))
        rows = rows[self.own_ns[rows] > 0]
        found: I64 = rows[in_order_of(gpu.stream[rows], gpu.start[rows])]
        return found

    @cached_property
    def op_names(self) -> I64:
        """Row-aligned with ``timeline.gpu``: the name of each event's op, -1 for none."""
        return values_at(self.timeline.host.name, self.links.op, -1)

    @cached_property
    def outer_names(self) -> I64:
        """Row-aligned with ``timeline.gpu``: the name of the op around each event's op, -1 for none."""
        return values_at(self.timeline.host.name, values_at(self.links.parent, self.links.op, -1), -1)
