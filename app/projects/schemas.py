"""Projects on the wire."""

from __future__ import annotations

from pydantic import BaseModel, Field

from app.text import Name
from app.times import Instant


class ProjectIn(BaseModel):
    """A project to make, or to find by its name."""

    name: Name = Field(examples=["llm-pretrain"])


class ProjectOut(BaseModel):
    """A project."""

    id: str
    name: str
    created_at: Instant


class ProjectList(BaseModel):
    """The projects that the caller may see, by name."""

    items: list[ProjectOut]
