"""What a push is answered with."""

from __future__ import annotations

from pydantic import BaseModel, Field

from app.jobs.schemas import JobOut


class Pushed(BaseModel):
    """The profile that was stored."""

    id: str
    run_id: str
    ranks: list[int] = Field(description="The ranks that it brought.")


class Arrived(BaseModel):
    """How much of a trace that comes in parts is here."""

    offset: int = Field(description="Bytes that are here; the next part begins there.")
    job: JobOut | None = Field(None, description="The job, once all of it is here.")
