"""Who kept the others waiting: the collectives of a run, summed over the rank that came last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from rooflight.protocol import Document


@dataclass(frozen=True, slots=True)
class Stragglers:
    """``times``: how often each rank came last of ``known`` collectives; ``caused_us``: what the others
    waited for it then, added up over them.

    ``wait_us`` is what a rank waited per step where it had nothing else to do, the mean over steps and
    ranks, and ``step_us`` the mean step; ``None`` when no step tells.
    """

    known: int
    times: Mapping[int, int]
    caused_us: Mapping[int, float]
    wait_us: float | None
    step_us: float | None


def stragglers(document: Document) -> Stragglers:
    """The sums over a run."""
    late = [(c.straggler, c) for c in document.collectives if c.straggler is not None]
    caused_us: dict[int, float] = defaultdict(float)
    for rank, c in late:
        caused_us[rank] += sum(c.wait_us.values())
    rows = [s for r in document.ranks for s in r.steps or r.inferred_steps]
    steps = [(s.step_time_us, s.wait_us) for s in rows if s.wait_us is not None]
    times_us, waits_us = zip(*steps, strict=True) if steps else ((), ())
    return Stragglers(
        known=len(late),
        times=Counter(rank for rank, _ in late),
        caused_us=caused_us,
        wait_us=sum(waits_us) / len(steps) if steps else None,
        step_us=sum(times_us) / len(steps) if steps else None,
    )
