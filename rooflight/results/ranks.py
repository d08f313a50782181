"""Collectives over the ranks of a run: stragglers, waiting and transfer (DEFINITIONS §8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rooflight.attribution.intervals import Clipper, Set, intersection, union
from rooflight.collectives import Collective
from rooflight.protocol import Flag
from rooflight.results.clocks import offsets
from rooflight.results.instances import Instances, match
from rooflight.results.result import RankResult
from rooflight.trace.tables import I64
from rooflight.units import NS_PER_US, us

#: How many of a long list are told.
_LISTED = 50


@dataclass(frozen=True, slots=True)
class AcrossRanks:
    """``offsets`` are ns by which a rank's clock is ahead of the lowest rank's; ``unaligned`` names
    the groups whose ranks did not record the same sequence.

    Of each collective: ``last`` is the last arrival, ``completion`` the last end; of each member:
    ``arrival``; all in ns on the common clock.
    """

    ranks: Sequence[RankResult]
    instances: Instances
    offsets: Mapping[int, int]
    unaligned: Sequence[str]
    arrival: I64
    last: I64
    completion: I64

    @property
    def wait(self) -> I64:
        """Row-aligned with the members: how long each waited for the last, in ns."""
        return self.last[self.instances.of_member] - self.arrival


def across_ranks(ranks: Sequence[RankResult]) -> AcrossRanks | None:
    """Match the collectives of the ranks, in order, and put their clocks together; ``None`` for one."""
    if len(ranks) < 2:
        return None
    instances, unaligned = match(ranks)
    ahead = offsets(ranks, instances)
    by_rank = np.array([ahead.get(r.rank.rank, 0) for r in ranks], np.int64)[instances.rank]
    arrival, end, first = instances.start - by_rank, instances.end - by_rank, instances.first[:-1]
    last, completion = (np.maximum.reduceat(t, first) if len(instances) else first for t in (arrival, end))
    return AcrossRanks(ranks, instances, ahead, unaligned, arrival, last, completion)


def collective_rows(across: AcrossRanks) -> list[Collective]:
    """A row per collective, in order of the first arrival: who came last, who waited how long, how
    long the transfer took."""
    i = across.instances
    numbers = np.array([r.rank.rank for r in across.ranks], object)
    keys = np.array([str(n) for n in numbers], object)[i.rank].tolist()
    wait_us = (across.wait / NS_PER_US).tolist()
    straggler = numbers[stragglers(across)].tolist()
    transfer_us = (np.maximum(across.completion - across.last, 0) / NS_PER_US).tolist()
    members = [slice(*pair) for pair in pairwise(i.first.tolist())]
    group, n = i.group.tolist(), i.n.tolist()
    return [
        Collective(
            n=n[c],
            group=i.groups[group[c]],
            straggler=straggler[c],
            transfer_us=transfer_us[c],
            wait_us=dict(zip(keys[members[c]], wait_us[members[c]], strict=True)),
        )
        for c in _by_arrival(across)
    ]


def split_communication(across: AcrossRanks) -> None:
    """Exposed communication of each step before the last rank had arrived (wait), and after (transfer)."""
    if not len(across.instances):
        return
    order = np.argsort(across.instances.rank, kind="stable")
    bounds = np.searchsorted(across.instances.rank[order], np.arange(len(across.ranks) + 1))
    wait = across.wait
    for r, result in enumerate(across.ranks):
        mine = order[bounds[r] : bounds[r + 1]]
        _split(result, _waiting(result, across.instances.call[mine], wait[mine]))


def flags(across: AcrossRanks) -> list[Flag]:
    """What was done to the clocks, and what could not be compared."""
    found = []
    if across.offsets:
        found.append(Flag("clock_aligned", len(across.offsets), listed(_moved(across))))
    if across.unaligned:
        detail = f"ranks disagree: {listed(across.unaligned)}"
        found.append(Flag("collectives_unaligned", len(across.unaligned), detail))
    return found


def listed(items: Sequence[object]) -> str:
    """The items in words, the first fifty of many."""
    more = [f"and {len(items) - _LISTED} more"] * (len(items) > _LISTED)
    return ", ".join([*map(str, items[:_LISTED]), *more])


def _moved(across: AcrossRanks) -> list[str]:
    """Each clock that was set: its host where one is named, its ranks, and by how much it was ahead."""
    clocks: dict[tuple[str | None, int], list[int]] = {}
    for r in across.ranks:
        if offset := across.offsets.get(r.rank.rank):
            clocks.setdefault((r.rank.host, offset), []).append(r.rank.rank)
    found = []
    for (host, offset), ranks in clocks.items():
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(ranks)}"
        ahead = f"{us(offset):+,.3f}".rstrip("0").rstrip(".")
        found.append(f"{f'{host} ({who})' if host else who} {ahead} us")
    return found


def stragglers(across: AcrossRanks) -> I64:
    """The lowest of the ranks that came last, by its place, of each collective."""
    i = across.instances
    rank = np.where(across.wait == 0, i.rank, len(across.ranks))
    lowest: I64 = np.minimum.reduceat(rank, i.first[:-1]) if len(i) else rank
    return lowest


def _by_arrival(across: AcrossRanks) -> list[int]:
    i = across.instances
    if not len(i):
        return []
    begin = np.minimum.reduceat(across.arrival, i.first[:-1])
    order: list[int] = np.lexsort((i.n, i.group, begin)).tolist()
    return order


def _waiting(result: RankResult, call: I64, wait: I64) -> Set:
    """When a rank waited within its own calls, on its own clock."""
    start, end = result.calls.start[call], result.calls.end[call]
    return union(start, start + np.minimum(wait, end - start))


def _split(result: RankResult, waiting: Set) -> None:
    exposed = result.exposed
    spans = np.column_stack((exposed.start, exposed.end))
    whole, waited = Clipper(spans), Clipper(intersection(spans, waiting))
    waits, both = (c.within(exposed.step_start, exposed.step_end).tolist() for c in (waited, whole))
    # A rank without GPU work has steps, and no parts that could be split.
    steps = result.rank.steps or result.rank.inferred_steps
    for step, wait, communication in zip(steps, waits, both, strict=False):
        step.wait_us = us(wait)
        step.transfer_us = us(communication - wait)
