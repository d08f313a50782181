"""Jobs on the wire."""

from __future__ import annotations

from pydantic import BaseModel, Field

from app.problems import Problem
from app.times import Instant


class JobOut(BaseModel):
    """The analysis of one trace."""

    id: str
    run_id: str
    state: str = Field(description="queued, running, done, failed (our fault) or refused (the trace's).")
    stage: str | None = Field(description="While it runs: starting, analysing, storing.")
    attempts: int = Field(description="How often it was begun; after 3 it fails.")
    source: str = Field(description="The file's name as sent.")
    problem: Problem | None = Field(
        description="Why it failed or was refused, with the status that a 4xx has."
    )
    created_at: Instant
    finished_at: Instant | None


class Accepted(BaseModel):
    """The trace is stored and will be analysed."""

    job: JobOut
