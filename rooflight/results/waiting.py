"""Who waits for whom: what the findings about a run rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import Clipper, intersection, union
from rooflight.findings import Waits
from rooflight.findings.waits import Shares
from rooflight.results.findings import add_from_run
from rooflight.results.ranks import AcrossRanks, stragglers
from rooflight.results.result import RankResult
from rooflight.results.shares import shares
from rooflight.trace.tables import I64
from rooflight.units import NS_PER_US

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Late:
    """Whom a rank waited for most often: that rank's number, how often, of how many collectives, and in which
    calls how long, in ns."""

    straggler: int
    last: int
    collectives: int
    call: I64
    wait: I64


def advise(across: AcrossRanks | None, ranks: Sequence[RankResult]) -> None:
    """Findings that rest on the comparison of the ranks, where communication is split already."""
    late = {} if across is None else _late(across)
    for place, (result, shared) in enumerate(zip(ranks, shares(across, ranks), strict=True)):
        add_from_run(result.rank, _waits(result, late.get(place), shared))


def _late(across: AcrossRanks) -> dict[int, _Late]:
    """By the place of each rank.  Where it did not wait, nobody was late for it."""
    i, ranks = across.instances, len(across.ranks)
    waited = np.flatnonzero(across.wait > 0)
    if not waited.size:
        return {}
    last: I64 = stragglers(across)[i.of_member]
    pair, count = np.unique(i.rank[waited] * ranks + last[waited], return_counts=True)
    rank, straggler = np.divmod(pair, ranks)
    total = np.bincount(i.rank, minlength=ranks)
    order = np.lexsort((straggler, -count, rank))
    best = order[np.unique(rank[order], return_index=True)[1]]
    for_whom = np.full(ranks, -1, np.int64)
    for_whom[rank[best]] = straggler[best]
    rows = waited[last[waited] == for_whom[i.rank[waited]]]
    rows = rows[np.argsort(i.rank[rows], kind="stable")]
    bounds = np.searchsorted(i.rank[rows], np.arange(ranks + 1))
    found = {}
    for b in best.tolist():
        r = int(rank[b])
        mine = rows[bounds[r] : bounds[r + 1]]
        number = across.ranks[int(straggler[b])].rank.rank
        found[r] = _Late(number, int(count[b]), int(total[r]), i.call[mine], across.wait[mine])
    return found


def _waits(result: RankResult, late: _Late | None, shared: Shares | None) -> Waits | None:
    """``None`` where no verdict is allowed, or no step tells."""
    rank = result.rank
    steps = rank.steps or rank.inferred_steps
    if rank.verdict_withheld is not None or not steps or (late is None and shared is None):
        return None
    kernels = [i for i, k in enumerate(rank.kernels) if k.regime == "communication"]
    return Waits(
        rank=rank.rank,
        straggler=late.straggler if late else rank.rank,
        last=late.last if late else 0,
        collectives=late.collectives if late else 0,
        steps=[s.n for s in steps],
        wait_ns=_waited_ns(result, late, len(steps)),
        wall_ns=sum(s.step_time_us for s in steps) * NS_PER_US,
        groups=tuple(sorted(kernels, key=lambda i: (-rank.kernels[i].time_us, i))[:_SHOWN]),
        shares=shared,
    )


def _waited_ns(result: RankResult, late: _Late | None, n: int) -> list[float]:
    """Of each of ``n`` steps the exposed communication in which the rank waited for the late one."""
    exposed = result.exposed
    if late is None or exposed.step_start.size != n:
        return [0.0] * n
    start, end = result.calls.start[late.call], result.calls.end[late.call]
    waiting = union(start, start + np.minimum(late.wait, end - start))
    spans = np.column_stack((exposed.start, exposed.end))
    inside = Clipper(intersection(spans, waiting)).within(exposed.step_start, exposed.step_end)
    return [float(ns) for ns in inside.tolist()]
