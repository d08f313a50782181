"""Captures on the wire."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.text import Name, Words
from app.times import Instant
from rooflight.captures import LONGEST_MS, MOST_ITERATIONS, MOST_PIDS

Pid = Annotated[int, Field(ge=1, le=2**31 - 1)]
State = Literal["queued", "taken", "analysing", "done", "failed"]


class CaptureIn(BaseModel):
    """Record processes of a host once: for a time, or for exactly so many optimizer steps."""

    model_config = ConfigDict(extra="forbid")

    host: Name = Field(description="The host, as its agent calls it.")
    project: Name = Field(description="Id or name of the project that the run goes to.")
    run: Name | None = Field(None, description="The run's name.")
    pids: list[Pid] = Field(
        default_factory=list,
        max_length=MOST_PIDS,
        description="Processes as the host sees them, or their launcher; empty: all that ask.",
    )
    job: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = Field(None, description="A Slurm job's number.")
    duration_ms: Annotated[int, Field(ge=1, le=LONGEST_MS)] | None = None
    iterations: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] | None = None
    warmup_iterations: Annotated[int, Field(ge=0, le=100)] = 1
    roundup: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Iterations begin at a multiple of it, for several ranks."
    )
    shapes: bool = True
    stack: bool = False
    modules: bool = False
    memory: bool = False
    keep_trace: bool = Field(False, description="Send the raw traces too.")

    @model_validator(mode="after")
    def _one_window(self) -> Self:
        if (self.duration_ms is None) == (self.iterations is None):
            raise ValueError("give either duration_ms or iterations")
        return self


class ProcessOut(BaseModel):
    """One process of a capture; `problem` names it."""

    pid: Pid
    state: Literal["waiting", "ordered", "written", "failed"]
    problem: Words | None = None
    rank: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    command: Words | None = None


class OutcomeIn(BaseModel):
    """What an agent says of a capture that it took."""

    state: Literal["taken", "analysing", "done", "failed"]
    problem: Words | None = None
    processes: list[ProcessOut] = Field(default_factory=list, max_length=4096)
    run_id: Annotated[str, Field(max_length=36)] | None = None


class CaptureOut(BaseModel):
    """A capture: what was ordered and what became of it."""

    id: str
    project: str
    host: str
    state: State
    problem: str | None
    processes: list[ProcessOut]
    run_id: str | None
    order: CaptureIn
    created_at: Instant
    updated_at: Instant


class CapturePage(BaseModel):
    """Captures, newest first; of an agent's question: the oldest first."""

    items: list[CaptureOut]
