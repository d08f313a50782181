"""Who waits for whom: what the findings about a run rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.collectives import Calls
from rooflight.attribution.intervals import EMPTY, Clipper, Set, intersection, measure, union
from rooflight.findings import Waits
from rooflight.findings.waits import Shares
from rooflight.results.findings import add_from_run
from rooflight.results.ranks import AcrossRanks, listed, stragglers
from rooflight.results.result import Exposed, RankResult
from rooflight.results.shares import shares
from rooflight.trace.tables import I64

_SHOWN = 5
#: What the flags of a rank say that it did not record.
_LACKING = {
    "no_gpu_activity": "GPU work",
    "no_shapes": "input shapes (record_shapes=True)",
    "no_steps": "marked steps (prof.step())",
    "gpu_model_unknown": "the model of the GPU",
}


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
    unlike = _unlike(ranks)
    for place, (result, shared) in enumerate(zip(ranks, shares(across, ranks), strict=True)):
        add_from_run(result, _waits(result, late.get(place), shared, unlike))


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


def _waits(
    result: RankResult, late: _Late | None, shared: Shares | None, unlike: Sequence[str]
) -> Waits | None:
    """``None`` where nothing is to be told."""
    rank, exposed = result.rank, result.exposed
    steps = rank.steps or rank.inferred_steps
    withheld = rank.verdict_withheld is not None or exposed.step_start.size != max(1, len(steps))
    if not unlike and (withheld or (late is None and shared is None)):
        return None
    kernels = [i for i, k in enumerate(rank.kernels) if k.regime == "communication"]
    when = _waited(exposed, result.calls, late)
    inside = Clipper(when).within(exposed.step_start, exposed.step_end)
    return Waits(
        rank=rank.rank,
        straggler=late.straggler if late else rank.rank,
        last=late.last if late else 0,
        collectives=late.collectives if late else 0,
        steps=[s.n for s in steps],
        wait_ns=inside.tolist(),
        when=when,
        wall_ns=measure(union(exposed.step_start, exposed.step_end)),
        groups=tuple(sorted(kernels, key=lambda i: (-rank.kernels[i].time_us, i))[:_SHOWN]),
        shares=shared,
        unlike=unlike,
        withheld=withheld,
    )


def _unlike(ranks: Sequence[RankResult]) -> list[str]:
    """What some ranks recorded and others did not, in words."""
    found = []
    for code, words in _LACKING.items():
        without = [r.rank.rank for r in ranks if any(f.code == code for f in r.rank.flags)]
        if 0 < len(without) < len(ranks):
            who = f"rank{'s' if len(without) > 1 else ''} {listed(without)}"
            found.append(f"{who} of {len(ranks)} without {words}")
    return found


def _waited(exposed: Exposed, calls: Calls, late: _Late | None) -> Set:
    """The instants of exposed communication, within the steps, in which the rank waited for the late one."""
    if late is None:
        return EMPTY
    start, end = calls.start[late.call], calls.end[late.call]
    waiting = union(start, start + np.minimum(late.wait, end - start))
    spans = intersection(np.column_stack((exposed.start, exposed.end)), waiting)
    return intersection(spans, union(exposed.step_start, exposed.step_end))
