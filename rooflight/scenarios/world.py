"""A step of several ranks: as long as its slowest one, whatever the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rooflight.protocol import Parts
from rooflight.scenarios.model import Range, StepForecast, exactly

#: So many ranks are moved, those with most to do themselves: one of them sets the pace elsewhere too.
MOST_RANKS = 16


@dataclass(frozen=True, slots=True)
class RankStep:
    """A step of one rank: wall time as recorded, of it waiting for other ranks, and how long all but that
    would take."""

    n: int
    recorded_us: float
    wait_us: float
    own: Range

    @property
    def own_us(self) -> float:
        """What it took as recorded, without waiting."""
        return self.recorded_us - self.wait_us


def together(ranks: Sequence[Sequence[RankStep]]) -> list[StepForecast]:
    """The steps of the first rank, with those of the same number of the others; of several of one number the
    first goes with the first."""
    by_key = [_numbered(steps) for steps in ranks]
    return [
        _slowest([steps[key] for steps in by_key if key in steps]) for key in (by_key[0] if ranks else ())
    ]


def _numbered(steps: Sequence[RankStep]) -> dict[tuple[int, int], RankStep]:
    """By its number and which one of that number it is, in their order."""
    seen: Counter[int] = Counter()
    found = {}
    for s in steps:
        found[s.n, seen[s.n]] = s
        seen[s.n] += 1
    return found


def without_waiting(parts: Parts, wait_us: float | None) -> tuple[Parts, float]:
    """Parts without what communication only waits for another rank, and how much that is."""
    wait = min(wait_us or 0.0, parts.communication)
    fields = {f: getattr(parts, f) for f in Parts.__struct_fields__}
    return Parts(**fields | {"communication": parts.communication - wait}), wait


def _slowest(steps: Sequence[RankStep]) -> StepForecast:
    """As long as the rank with most to do itself; what even that one waited, since ranks wait for each other
    in turns, stays."""
    recorded = max(s.recorded_us for s in steps)
    in_turns = recorded - max(s.own_us for s in steps)
    own = Range(max(s.own.low for s in steps), max(s.own.mid for s in steps), max(s.own.high for s in steps))
    return StepForecast(steps[0].n, recorded, own + exactly(in_turns))
