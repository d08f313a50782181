"""The ranks of a run side by side, and the collectives in which they waited for one another."""

from __future__ import annotations

from dataclasses import dataclass

from app.pages import numbers as n
from app.pages.steps import counted_steps, parts_of
from app.pages.vocabulary import GRADES
from app.pages.waterfall import Piece, stack
from rooflight.protocol import Document, Rank

MAX_COLLECTIVES = 100


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank in the picker: its median step, its regime and the bar of its mean step."""

    rank: int
    p50: float | None
    regime: str | None
    grade: str
    pieces: list[Piece]
    selected: bool


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective with its latest rank and the longest wait."""

    n: int
    group: str
    straggler: int | None
    transfer_us: float | None
    longest_wait_us: float | None


def rank_rows(document: Document, selected: Rank) -> list[RankRow]:
    """One row per rank; their bars share one axis."""
    longest = max((_rank_wall(r) for r in document.ranks), default=0.0) or 1.0
    return [_rank_row(r, longest, r is selected) for r in document.ranks]


def _rank_row(rank: Rank, longest: float, selected: bool) -> RankRow:
    steps, inferred = counted_steps(rank)
    parts, _ = parts_of(rank, steps, None, inferred)
    p50 = n.percentile([s.step_time_us for s in steps], 50)
    grade = GRADES.get(rank.grade, rank.grade)
    return RankRow(rank.rank, p50, rank.regime, grade, stack(parts, longest), selected)


def _rank_wall(rank: Rank) -> float:
    steps, inferred = counted_steps(rank)
    return sum(parts_of(rank, steps, None, inferred)[0].values())


def collective_rows(document: Document) -> list[CollectiveRow]:
    """The collectives with the longest wait, at most a hundred."""
    rows = [
        CollectiveRow(c.n, c.group, c.straggler, c.transfer_us, max(c.wait_us.values(), default=None))
        for c in document.collectives
    ]
    return sorted(rows, key=lambda c: -(c.longest_wait_us or 0.0))[:MAX_COLLECTIVES]
