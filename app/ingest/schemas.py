"""What a push is answered with."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Pushed(BaseModel):
    """The profile that was stored."""

    id: str
    run_id: str
    ranks: list[int] = Field(description="The ranks that it brought.")
