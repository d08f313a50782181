"""Collectives over the ranks of a run: clocks, stragglers, waiting and transfer (DEFINITIONS §8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rooflight.attribution.collectives import Call
from rooflight.protocol import Collective, Flag
from rooflight.units import us

_LEAST_OFFSET_NS = 10_000
_SURE_MADS = 5


@dataclass(frozen=True, slots=True)
class RankCalls:
    """One rank's collectives; ``host`` is ``None`` when the recording does not name it."""

    rank: int
    host: str | None
    calls: Sequence[Call]


@dataclass(frozen=True, slots=True)
class Instance:
    """One collective on every rank that takes part, by rank."""

    n: int
    group: str
    all_rank: bool
    calls: Mapping[int, Call]


@dataclass(frozen=True, slots=True)
class AcrossRanks:
    """``offsets`` are ns by which a rank's clock is ahead of the lowest rank's; ``unaligned`` names
    the groups whose ranks did not record the same sequence."""

    instances: Sequence[Instance] = ()
    offsets: Mapping[int, int] = field(default_factory=dict)
    unaligned: Sequence[str] = ()

    def arrivals(self, instance: Instance) -> dict[int, int]:
        """When each rank came, on the common clock, in ns."""
        return {r: c.start - self.offsets.get(r, 0) for r, c in instance.calls.items()}

    def waits(self, rank: int) -> list[tuple[int, int]]:
        """The intervals [arrival, last arrival) of a rank within its own calls, on its own wall clock."""
        spans = []
        for instance in self.instances:
            own = instance.calls.get(rank)
            if own is not None:
                last = max(self.arrivals(instance).values()) + self.offsets.get(rank, 0)
                spans.append((own.start, max(own.start, min(own.end, last))))
        return spans


def across_ranks(ranks: Sequence[RankCalls]) -> AcrossRanks:
    """Match the collectives of several ranks and put their clocks together."""
    if len(ranks) < 2:
        return AcrossRanks()
    instances, unaligned = _instances(ranks)
    return AcrossRanks(instances, _offsets(ranks, instances), unaligned)


def collective_rows(across: AcrossRanks) -> list[Collective]:
    """A row per collective: who came last, who waited how long, how long the transfer took."""
    return [_row(across, i) for i in across.instances]


def flags(across: AcrossRanks) -> list[Flag]:
    """What was done to the clocks, and what could not be compared."""
    found = []
    if across.offsets:
        moved = ", ".join(f"rank {r} {us(ns):+.15g} us" for r, ns in sorted(across.offsets.items()))
        found.append(Flag("clock_aligned", len(across.offsets), moved))
    if across.unaligned:
        groups = ", ".join(across.unaligned)
        found.append(Flag("collectives_unaligned", len(across.unaligned), f"ranks disagree: {groups}"))
    return found


def _row(across: AcrossRanks, instance: Instance) -> Collective:
    arrivals = across.arrivals(instance)
    last = max(arrivals.values())
    completion = max(c.end - across.offsets.get(r, 0) for r, c in instance.calls.items())
    return Collective(
        n=instance.n,
        group=instance.group,
        straggler=min(r for r, t in arrivals.items() if t == last),
        transfer_us=us(max(0, completion - last)),
        wait_us={str(r): us(last - t) for r, t in sorted(arrivals.items())},
    )


# -- which call is which ------------------------------------------------------------------------------


def _instances(ranks: Sequence[RankCalls]) -> tuple[list[Instance], list[str]]:
    groups: dict[str, dict[int, list[Call]]] = {}
    for r in ranks:
        for call in r.calls:
            groups.setdefault(call.group, {}).setdefault(r.rank, []).append(call)
    instances: list[Instance] = []
    unaligned: list[str] = []
    for group, by_rank in groups.items():
        if len(by_rank) < 2:
            continue
        matched = _matched(by_rank)
        if matched is None:
            unaligned.append(group)
            continue
        instances += [
            Instance(n, group, all(c.all_rank for c in calls.values()), calls)
            for n, calls in enumerate(matched)
        ]
    instances.sort(key=lambda i: min(c.start for c in i.calls.values()))
    return instances, unaligned


def _matched(by_rank: Mapping[int, Sequence[Call]]) -> list[dict[int, Call]] | None:
    """The calls of a group put together: by number, else by place if all ranks did the same."""
    if all(c.seq is not None for calls in by_rank.values() for c in calls):
        return _by_number(by_rank)
    kinds = [[c.kind for c in calls] for calls in by_rank.values()]
    if any(k != kinds[0] for k in kinds):
        return None
    return [{r: calls[i] for r, calls in by_rank.items()} for i in range(len(kinds[0]))]


def _by_number(by_rank: Mapping[int, Sequence[Call]]) -> list[dict[int, Call]]:
    numbered: dict[int, dict[int, Call]] = {}
    for r, calls in by_rank.items():
        for c in calls:
            numbered.setdefault(c.seq or 0, {}).setdefault(r, c)
    return [calls for _, calls in sorted(numbered.items()) if len(calls) == len(by_rank)]


# -- clocks -------------------------------------------------------------------------------------------


def _offsets(ranks: Sequence[RankCalls], instances: Sequence[Instance]) -> dict[int, int]:
    """By how much each clock is ahead of the lowest rank's, where that is sure; others are left out."""
    reference = min(ranks, key=lambda r: r.rank)
    clocks: dict[str, list[int]] = {}
    for r in ranks:
        clocks.setdefault(r.host or f"rank {r.rank}", []).append(r.rank)
    here = next(set(members) for members in clocks.values() if reference.rank in members)
    result: dict[int, int] = {}
    for members in clocks.values():
        if reference.rank in members:
            continue
        offset = _offset(instances, here, set(members))
        if offset:
            result |= dict.fromkeys(members, offset)
    return result


def _offset(instances: Sequence[Instance], here: set[int], there: set[int]) -> int:
    ahead = [
        calls[b].end - calls[a].end
        for i in instances
        if i.all_rank
        for calls in (i.calls,)
        for a in here & calls.keys()
        for b in there & calls.keys()
    ]
    if not ahead:
        return 0
    middle = median(ahead)
    spread = median(abs(d - middle) for d in ahead)
    sure = abs(middle) > _LEAST_OFFSET_NS and abs(middle) > _SURE_MADS * spread
    return round(middle) if sure else 0
