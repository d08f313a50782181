"""How unevenly ranks receive in all-to-alls, and what that costs: the most loaded one sets the pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64, Clipper, intersection, union
from rooflight.findings.waits import LEAST_RATIO, Shares
from rooflight.results.medians import median
from rooflight.results.ranks import AcrossRanks, stragglers
from rooflight.results.result import RankResult
from rooflight.trace.tables import I64, Mask


@dataclass(frozen=True, slots=True)
class _Exchanges:
    """All-to-alls of one rank, row by row: the call, how long it waited there in ns, whether for the rank
    that received most in the one before, the largest share over the mean, and the place of the rank that has
    it, -1 where only this rank's own split tells."""

    call: I64
    wait: I64
    blamed: Mask
    ratio: F64
    heaviest: I64


def shares(across: AcrossRanks | None, ranks: Sequence[RankResult]) -> list[Shares | None]:
    """Of each rank; ``None`` where no all-to-all is uneven.  With one rank its own splits stand for all."""
    alone = across is None
    found = [_split(r) for r in ranks] if across is None else _between(across)
    return [_cost(r, e, ranks, alone=alone) for r, e in zip(ranks, found, strict=True)]


def _split(result: RankResult) -> _Exchanges:
    ratio = result.messages.skew
    call = np.flatnonzero(ratio >= 1)
    none = np.full(call.size, -1, np.int64)
    return _Exchanges(call, np.zeros(call.size, np.int64), np.zeros(call.size, bool), ratio[call], none)


def _between(across: AcrossRanks) -> list[_Exchanges]:
    i, n = across.instances, len(across.ranks)
    order = np.argsort(i.rank, kind="stable")
    bounds = np.searchsorted(i.rank[order], np.arange(n + 1))
    received = np.full(i.rank.size, -1, np.int64)
    for r, result in enumerate(across.ranks):
        mine = order[bounds[r] : bounds[r + 1]]
        if result.messages.received.size:
            received[mine] = result.messages.received[i.call[mine]]
    ratio, heaviest = _loads(across, received)
    blamed = stragglers(across) == _before(across, ratio, heaviest)
    of, wait = i.of_member, across.wait
    members = (order[bounds[r] : bounds[r + 1]] for r in range(n))
    kept = (m[ratio[of[m]] >= 1] for m in members)
    return [_Exchanges(i.call[m], wait[m], blamed[of[m]], ratio[of[m]], heaviest[of[m]]) for m in kept]


def _loads(across: AcrossRanks, received: I64) -> tuple[F64, I64]:
    """Of each collective the largest share over the mean, 0 where it is no all-to-all whose sizes all ranks
    know; and the place of the (lowest) rank that has it."""
    i, first = across.instances, across.instances.first[:-1]
    if not first.size:
        return np.empty(0, np.float64), first
    least, most = np.minimum.reduceat(received, first), np.maximum.reduceat(received, first)
    total = np.add.reduceat(received.astype(np.float64), first)
    known = (least >= 0) & (total > 0)
    ratio = np.where(known, most * np.diff(i.first) / np.where(known, total, 1), 0.0)
    largest = np.where(received == most[i.of_member], i.rank, len(across.ranks))
    return ratio, np.minimum.reduceat(largest, first)


def _before(across: AcrossRanks, ratio: F64, heaviest: I64) -> I64:
    """Of each all-to-all the rank that received most in the one before of its group, -1 where that was
    even."""
    i = across.instances
    exchanges = np.flatnonzero(ratio >= 1)
    exchanges = exchanges[np.lexsort((i.n[exchanges], i.group[exchanges]))]
    found = np.full(len(i), -1, np.int64)
    earlier, later = exchanges[:-1], exchanges[1:]
    follows = (i.group[earlier] == i.group[later]) & (ratio[earlier] >= LEAST_RATIO)
    found[later[follows]] = heaviest[earlier[follows]]
    return found


def _cost(result: RankResult, e: _Exchanges, ranks: Sequence[RankResult], *, alone: bool) -> Shares | None:
    """What the uneven ones cost this rank within its steps: transfer that a mean share would not take, and
    waiting for the rank that had received most."""
    uneven = e.ratio >= LEAST_RATIO
    steps = result.exposed
    if not uneven.any() or not steps.step_start.size:
        return None
    windows = union(steps.step_start, steps.step_end)
    exposed = intersection(np.column_stack((steps.start, steps.end)), windows)
    start, end = result.calls.start[e.call], result.calls.end[e.call]
    begun = np.minimum(start + e.wait, end)
    inside = Clipper(exposed)
    moving = inside.within(begun, end) * np.where(uneven, 1 - 1 / np.maximum(e.ratio, 1), 0.0)
    waiting = np.where(e.blamed, inside.within(start, begun), 0)
    spoken = union(
        np.concatenate((begun[uneven], start[e.blamed])), np.concatenate((end[uneven], begun[e.blamed]))
    )
    counts = np.bincount(e.heaviest[uneven] + 1, minlength=1)
    heaviest = int(counts.argmax()) - 1
    return Shares(
        exchanges=int(e.call.size),
        uneven=int(uneven.sum()),
        ratio=median(e.ratio[uneven]),
        heaviest=None if alone or heaviest < 0 else ranks[heaviest].rank.rank,
        times=int(counts.max()),
        when=intersection(exposed, spoken),
        moving_ns=float(moving.sum()),
        waiting_ns=float(waiting.sum()),
        experts=_experts(ranks),
    )


def _experts(ranks: Sequence[RankResult]) -> float | None:
    """The longest time of grouped products of a rank over the mean of the ranks; ``None`` without any."""
    times = [sum(k.time_us for k in r.rank.kernels if _is_grouped(k.op, k.family)) for r in ranks]
    total = sum(times)
    return max(times) * len(times) / total if len(times) > 1 and total > 0 else None


def _is_grouped(op: str | None, family: str | None) -> bool:
    return family == "moe_gemm" or (op is not None and "grouped_mm" in op)
