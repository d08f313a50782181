"""Runs on the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from app.problems import Problem
from app.text import Name, Words
from app.times import Instant

#: As :data:`rooflight.protocol.UnitsPerStep`.
UnitsIn = Annotated[
    dict[Annotated[Words, Field(min_length=1, max_length=40)], Annotated[float, Field(gt=0, le=1e18)]],
    Field(max_length=16),
]


class RunIn(BaseModel):
    """A run to make; it is listed once it has a profile."""

    name: Name | None = Field(None, description="Defaults to `run` and its number.")
    host: Words | None = Field(None, description="The machine that it ran on.")
    units_per_step: UnitsIn | None = Field(
        None, description='What one rank\'s step of its traces holds, as `{"tokens": 8192}`.'
    )


class RunSummary(BaseModel):
    """A run as a list shows it; unknown is null."""

    id: str
    project: str
    name: str
    number: int = Field(description="Counts from 1 within the project.")
    created_at: Instant
    state: str = Field(description="empty, analyzing, ready, failed or refused.")
    source: str | None = Field(description="The file that was sent, or who pushed.")
    host: str | None
    device_name: str | None
    n_steps: int | None
    step_time_p50_us: float | None
    regime: str | None
    regime_confidence: str | None
    grade: str | None
    parts_us: dict[str, float] | None = Field(
        description="Mean per step of the parts of the headline device, in µs."
    )
    job_id: str | None = Field(description="The newest job of this run.")
    problem: Problem | None = Field(description="Why the newest trace was refused or failed.")


class RunPage(BaseModel):
    """One page of runs, newest first."""

    items: list[RunSummary]
    next_cursor: str | None = Field(description="Ask with ?cursor= for the next page; null on the last.")


class RegimeShare(BaseModel):
    """Kernel time of one regime."""

    regime: str
    kernels: int = Field(description="Kernel groups.")
    launches: int
    time_us: float
    share_pct: float | None


class RankRegimes(BaseModel):
    """The regimes of one rank: of its verdict, of its kernels, of its steps."""

    rank: int
    regime: str | None
    regime_confidence: str | None
    regime_reason: str | None
    kernels: list[RegimeShare]
    steps: dict[str, int] = Field(description="Steps by regime; a withheld one counts as `withheld`.")


class Regimes(BaseModel):
    """The regimes of a run, per rank."""

    items: list[RankRegimes]
