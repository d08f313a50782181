"""Who waits for whom: what the findings about a run rest on."""

from __future__ import annotations

import numpy as np

from rooflight.findings import Waits
from rooflight.protocol import Rank
from rooflight.results.findings import add_from_run
from rooflight.results.ranks import AcrossRanks, stragglers
from rooflight.results.result import RankResult
from rooflight.trace.tables import I64
from rooflight.units import NS_PER_US

_SHOWN = 5


def advise(across: AcrossRanks | None, ranks: list[RankResult]) -> None:
    """Findings that rest on the comparison of the ranks, where communication is split already."""
    late = {} if across is None else _late(across)
    for place, result in enumerate(ranks):
        add_from_run(result.rank, _waits(result.rank, *late[place]) if place in late else None)


def _late(across: AcrossRanks) -> dict[int, tuple[int, int, int]]:
    """By the place of each rank: who came last most often in its collectives, how often, of how many."""
    i, ranks = across.instances, len(across.ranks)
    if not len(i):
        return {}
    last: I64 = stragglers(across)[i.of_member]
    pair, count = np.unique(i.rank * ranks + last, return_counts=True)
    rank, straggler = np.divmod(pair, ranks)
    total = np.bincount(i.rank, minlength=ranks)
    order = np.lexsort((straggler, -count, rank))
    best = order[np.unique(rank[order], return_index=True)[1]]
    numbers = [r.rank.rank for r in across.ranks]
    return {
        int(rank[b]): (numbers[int(straggler[b])], int(count[b]), int(total[rank[b]])) for b in best.tolist()
    }


def _waits(rank: Rank, straggler: int, last: int, collectives: int) -> Waits | None:
    """``None`` where no verdict is allowed, or no step was split."""
    steps = [s for s in rank.steps or rank.inferred_steps if s.wait_us is not None]
    if rank.verdict_withheld is not None or not steps:
        return None
    kernels = [i for i, k in enumerate(rank.kernels) if k.regime == "communication"]
    return Waits(
        rank=rank.rank,
        straggler=straggler,
        last=last,
        collectives=collectives,
        steps=[s.n for s in steps],
        wait_ns=[(s.wait_us or 0.0) * NS_PER_US for s in steps],
        wall_ns=sum(s.step_time_us for s in steps) * NS_PER_US,
        groups=tuple(sorted(kernels, key=lambda i: (-rank.kernels[i].time_us, i))[:_SHOWN]),
    )
