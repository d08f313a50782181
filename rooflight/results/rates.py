"""How fast the collectives of a run were, against the link: with all ranks the transfer tells, else the
kernel's own duration (DEFINITIONS §8, §15 L)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.collectives import Communication
from rooflight.cost.collective import bus_bytes
from rooflight.protocol import Rank
from rooflight.results.medians import medians
from rooflight.results.ranks import AcrossRanks
from rooflight.results.result import RankResult
from rooflight.trace.tables import I64, Mask
from rooflight.units import GIGA, NS_PER_S, us

TRANSFER, SEEN, DURATION = "transfer", "seen_ranks", "duration"


@dataclass(frozen=True, slots=True)
class _Met:
    """The calls of a rank that others took part in: what each waited and how long its transfer took, in ns;
    how many ranks are known to have met in it and on how many hosts they are (0 is unknown)."""

    call: I64
    wait: I64
    transfer: I64
    ranks: I64
    hosts: I64


_NOBODY = _Met(*(np.empty(0, np.int64),) * 5)


def with_rates(across: AcrossRanks | None, ranks: Sequence[RankResult], missing: int) -> None:
    """Complete the rows of each rank, whatever an earlier comparison made of them; ``missing`` is how many
    ranks of the run no file was given for."""
    met = [_NOBODY] * len(ranks) if across is None else _met(across)
    for result, mine in zip(ranks, met, strict=True):
        if result.rank.communication:
            _Rated(result, mine, complete=not missing).run()


def _met(across: AcrossRanks) -> list[_Met]:
    i, n = across.instances, len(across.ranks)
    of = i.of_member
    transfer = np.maximum(across.completion - across.last, 0)[of]
    members, hosts = np.diff(i.first)[of], _hosts(across)[of]
    order = np.argsort(i.rank, kind="stable")
    bounds = np.searchsorted(i.rank[order], np.arange(n + 1))
    mine = (order[bounds[r] : bounds[r + 1]] for r in range(n))
    return [_Met(i.call[m], across.wait[m], transfer[m], members[m], hosts[m]) for m in mine]


def _hosts(across: AcrossRanks) -> I64:
    """On how many hosts the members of each collective are, as far as one or several; 0 where a rank does not
    name its host."""
    names = sorted({r.rank.host for r in across.ranks if r.rank.host})
    place = {name: i + 1 for i, name in enumerate(names)}
    host = np.array([place.get(r.rank.host or "", 0) for r in across.ranks], np.int64)[across.instances.rank]
    first = across.instances.first[:-1]
    if not first.size:
        return first
    least, most = np.minimum.reduceat(host, first), np.maximum.reduceat(host, first)
    return np.where(least == 0, 0, np.where(least == most, 1, 2))


class _Rated:
    """The rows of one rank with what the others tell of them."""

    def __init__(self, result: RankResult, met: _Met, *, complete: bool) -> None:
        self._rank, self._messages, self._calls = result.rank, result.messages, result.calls
        self._rows, self._met, self._complete = result.rank.communication, met, complete

    def run(self) -> None:
        n = len(self._rows)
        row = self._messages.row[self._met.call]
        kept = row >= 0
        row, met = row[kept], _Met(*(getattr(self._met, f)[kept] for f in _Met.__slots__))
        matched = np.bincount(row, minlength=n)
        waits, transfers = (_sums(row, ns, n) for ns in (met.wait, met.transfer))
        for i, shown in enumerate(self._rows):
            shown.matched = int(matched[i])
            some = shown.matched > 0
            shown.wait_us, shown.transfer_us = (us(int(t[i])) if some else None for t in (waits, transfers))
            shown.basis = self._basis(shown, met.ranks[row == i]) if some else DURATION
            self._group(shown, met.ranks[row == i])
        self._rates(row, met)
        for i, shown in enumerate(self._rows):
            _against_link(shown, self._rank, self._local(i, met.hosts[row == i]))

    def _basis(self, row: Communication, members: I64) -> str:
        everyone = self._complete if row.ranks is None else bool((members == row.ranks).all())
        return TRANSFER if everyone else SEEN

    def _group(self, row: Communication, members: I64) -> None:
        """Where the recording names no size, the group is who met."""
        if row.ranks is None and row.basis == TRANSFER and (members == members[0]).all():
            row.ranks = int(members[0])
        if row.bus_bytes is None and row.message_bytes is not None and row.ranks is not None:
            row.bus_bytes = bus_bytes(row.kind, row.message_bytes, row.ranks)

    def _rates(self, row: I64, met: _Met) -> None:
        """Medians over the collectives of bytes over time: of those that met, else of all."""
        n, own = len(self._rows), self._messages.row
        whole = np.array([r.basis == DURATION for r in self._rows], bool)
        alone = np.flatnonzero((own >= 0) & whole[own])
        call = np.concatenate((met.call, alone))
        ns = np.concatenate((met.transfer, (self._calls.end - self._calls.start)[alone]))
        rate = _rates(np.concatenate((row, own[alone])), self._messages.message[call], ns, n)
        for shown, value in zip(self._rows, rate.tolist(), strict=True):
            shown.algorithm_gbs = None if math.isnan(value) else value / GIGA
            shown.bus_gbs = _bus_gbs(shown, value)

    def _local(self, i: int, hosts: I64) -> int:
        if hosts.size and (hosts > 0).all():
            return int((hosts == 1).all())
        return int(self._messages.local[i])


def _rates(row: I64, size: I64, ns: I64, n: int) -> F64:
    """Bytes per second of the median collective of each row; NaN where sizes or times are unknown."""
    known: Mask = (size > 0) & (ns > 0)
    return medians(row[known], size[known] / ns[known] * NS_PER_S, n)


def _sums(row: I64, ns: I64, n: int) -> I64:
    total = np.zeros(n, np.int64)
    np.add.at(total, row, ns)
    return total


def _bus_gbs(row: Communication, rate: float) -> float | None:
    if math.isnan(rate) or row.bus_bytes is None or not row.message_bytes:
        return None
    return rate * (row.bus_bytes / row.message_bytes) / GIGA


def _against_link(row: Communication, rank: Rank, local: int) -> None:
    roofs = rank.roofs.get(row.device)
    link = roofs.link.practical if roofs and roofs.link else None
    row.link_gbs = link / GIGA if link and local == 1 else None
    row.link_fraction = row.bus_gbs / row.link_gbs if row.bus_gbs is not None and row.link_gbs else None
    row.reason = "; ".join(_reasons(row, local, link))


def _reasons(row: Communication, local: int, link: float | None) -> list[str]:
    found = []
    if row.message_bytes is None:
        found.append("message size unknown")
    elif row.bus_bytes is None:
        found.append("size of the group or kind of collective unknown")
    if local != 1:
        found.append("crosses hosts: link unknown" if local == 0 else "may cross hosts: link unknown")
    elif not link:
        found.append("link of the device unknown")
    if row.basis == DURATION and row.algorithm_gbs is not None:
        found.append("by the kernel's duration, which holds waiting: a lower bound")
    if row.basis == SEEN:
        found.append("ranks are missing: a lower bound")
    return found
