"""Rows of the list of runs."""

from __future__ import annotations

from dataclasses import dataclass

from app.pages.numbers import DASH, column, count
from app.pages.vocabulary import GRADES
from app.pages.waterfall import Piece, stack
from app.runs.schemas import RunSummary
from app.times import iso

STATES = {"analyzing": "being analysed", "failed": "failed", "refused": "refused", "empty": "no profile yet"}


@dataclass(frozen=True, slots=True)
class ListRow:
    """A run in the list; the bar is its mean step on its own scale, since runs differ a thousandfold.

    ``step_time`` is in ms.
    """

    run: RunSummary
    state: str
    step_time: str
    n_steps: str
    pieces: list[Piece]
    grade: str
    created: str
    created_iso: str


def list_rows(runs: list[RunSummary]) -> list[ListRow]:
    """The rows in the order given."""
    return [_row(r) for r in runs]


def _row(run: RunSummary) -> ListRow:
    parts = {p: us for p, us in (run.parts_us or {}).items() if us > 0}
    wall = sum(parts.values())
    p50 = run.step_time_p50_us
    return ListRow(
        run,
        STATES.get(run.state, ""),
        DASH if p50 is None else column(p50 / 1_000),
        count(run.n_steps),
        stack(parts, wall) if wall else [],
        GRADES.get(run.grade or "", run.grade or DASH),
        run.created_at.strftime("%-d %b %Y, %H:%M"),
        iso(run.created_at),
    )
