"""Which calls of the ranks are one collective (DEFINITIONS §8), in columns over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.collectives import Calls, is_all_rank, is_message
from rooflight.results.result import RankResult
from rooflight.trace.builder import Interner
from rooflight.trace.tables import I64, Mask, among, distinct

#: Times on the common clock keep within this of the first call: sums and differences of four fit int64.
_FAR_NS = (1 << 61) - 1


@dataclass(frozen=True, slots=True)
class Instances:
    """Collectives that all ranks of their group took part in.

    ``group`` indexes ``groups``, ``n`` counts within the group; the members of collective i stand at
    ``first[i]`` to ``first[i + 1]``, in order of their rank.  Of each member: ``rank`` and ``call`` are
    the places in the ranks and in their calls; ``start`` and ``end`` are ns on the wall clocks as
    recorded, counted from an early instant.
    """

    groups: Sequence[str]
    group: I64
    n: I64
    all_rank: Mask
    first: I64
    rank: I64
    call: I64
    start: I64
    end: I64

    def __len__(self) -> int:
        return self.group.size

    @property
    def of_member(self) -> I64:
        """The collective of each member."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


def match(ranks: Sequence[RankResult]) -> tuple[Instances, list[str]]:
    """The collectives of ``ranks``, and the groups whose ranks did not record the same sequence."""
    groups: Interner[str] = Interner()
    kinds: Interner[str] = Interner()
    calls = _joined(ranks, groups, kinds)
    message = np.array([is_message(k) for k in kinds], bool)
    number, lane, positional = _numbers(calls, message)
    order = _one_per_rank(calls, number, lane)
    place = np.flatnonzero(_changes(calls.group[order], lane[order], number[order]))
    rows, size = order[place], np.diff(place, append=order.size)
    several = _ranks_of(calls, lane)[rows]
    whole = (several > 1) & (size == several)
    # Without numbers, ranks that did not all do the same in the same order give no instance at all; nor
    # do more ranks than a group has: they are several groups that nothing tells apart.  Where all ranks are
    # there, a group of as many has all of them, and nobody knows when one that lacks it came.
    broken = positional[rows] & ~(whole & _agree(calls.kind[order], place))
    recorded = _largest(calls.size[order], place)
    broken = (several > 1) & (broken | (recorded > 0) & (recorded < several))
    broken |= (recorded == _all(ranks)) & (several < recorded) & ~lane[rows]
    group = calls.group[rows]
    unaligned = distinct(group[broken])
    whole &= ~among(group, unaligned)
    kept = order[np.repeat(whole, size)]
    all_rank = np.array([is_all_rank(k) for k in kinds], bool)[calls.kind[kept]]
    first = np.concatenate(([0], np.cumsum(size[whole])))
    found = Instances(
        groups=tuple(groups),
        group=group[whole],
        n=_counted(group[whole]),
        all_rank=np.logical_and.reduceat(all_rank, first[:-1]) if all_rank.size else all_rank,
        first=first,
        rank=calls.rank[kept],
        call=calls.call[kept],
        start=calls.start[kept],
        end=calls.end[kept],
    )
    return found, [found.groups[g] for g in unaligned.tolist()]


def _all(ranks: Sequence[RankResult]) -> int:
    """How many ranks the run has, if all are there; else 0, which is no group's size."""
    world = max((r.world_size or 0 for r in ranks), default=0)
    return world if world == len(ranks) else 0


@dataclass(frozen=True, slots=True)
class _Joined:
    """The calls of all ranks below each other, each rank's in order of their start."""

    rank: I64
    call: I64
    group: I64
    kind: I64
    seq: I64
    size: I64
    start: I64
    end: I64


def _joined(ranks: Sequence[RankResult], groups: Interner[str], kinds: Interner[str]) -> _Joined:
    origin = next((r.base_ns + int(r.calls.start[0]) for r in ranks if r.calls.start.size), 0)
    parts = [_placed(i, r.calls, r.base_ns - origin, groups, kinds) for i, r in enumerate(ranks)]
    return _Joined(*map(np.concatenate, zip(*parts, strict=True)))


def _placed(
    rank: int, calls: Calls, shift_ns: int, groups: Interner[str], kinds: Interner[str]
) -> tuple[I64, ...]:
    of_group = np.array([groups[g] for g in calls.groups], np.int64)
    of_kind = np.array([kinds[k] for k in calls.kinds], np.int64)
    rows = np.arange(calls.start.size)
    times = (_shifted(calls.start, shift_ns), _shifted(calls.end, shift_ns))
    told = (of_group[calls.group], of_kind[calls.kind], calls.seq, calls.size)
    return np.full(rows.size, rank), rows, *told, *times


def _shifted(ns: I64, by: int) -> I64:
    near = min(max(by, -_FAR_NS), _FAR_NS)
    return np.clip(np.clip(ns, -2 * _FAR_NS, 2 * _FAR_NS) + near, -_FAR_NS, _FAR_NS)


def _numbers(calls: _Joined, message: Mask) -> tuple[I64, Mask, Mask]:
    """The number of each call in its group and lane: as recorded, or by place where a call of the group
    has none.  Recorded numbers of messages and of collectives run apart, in two lanes."""
    positional = among(calls.group, calls.group[calls.seq < 0])
    order = np.lexsort((calls.rank, calls.group))
    place = np.empty(order.size, np.int64)
    place[order] = _counted(calls.group[order], calls.rank[order])
    return np.where(positional, place, calls.seq), message[calls.kind] & ~positional, positional


def _one_per_rank(calls: _Joined, number: I64, lane: Mask) -> I64:
    """Rows by group, lane, number and rank; of several calls with one number a rank's first."""
    order = np.lexsort((calls.call, calls.rank, number, lane, calls.group))
    return order[_changes(calls.group[order], lane[order], number[order], calls.rank[order])]


def _ranks_of(calls: _Joined, lane: Mask) -> I64:
    """For each row, how many ranks its group and lane have."""
    order = np.lexsort((calls.rank, lane, calls.group))
    group, lanes = calls.group[order], lane[order]
    begins = np.flatnonzero(_changes(group, lanes))
    ranks = np.add.reduceat(_changes(group, lanes, calls.rank[order]), begins) if begins.size else begins
    of_row = np.empty(order.size, np.int64)
    of_row[order] = np.repeat(ranks, np.diff(begins, append=order.size))
    return of_row


def _agree(kind: I64, place: I64) -> Mask:
    """Whether the members of each instance do the same."""
    same: Mask = _largest(kind, place) == -_largest(-kind, place)
    return same


def _largest(values: I64, place: I64) -> I64:
    """The largest of each instance; they begin at ``place``."""
    return np.maximum.reduceat(values, place) if place.size else values


def _changes(*columns: I64 | Mask) -> Mask:
    """Where a row of sorted columns differs from the one before; the first does."""
    changed = np.zeros(columns[0].size, bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def _counted(*columns: I64) -> I64:
    """The place of each row within its run of equal sorted columns, from 0."""
    begins = np.flatnonzero(_changes(*columns))
    return np.arange(columns[0].size) - np.repeat(begins, np.diff(begins, append=columns[0].size))
