"""A run: one execution of a workload, seen by one profile per rank."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Double, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id, UtcDateTime, new_id, utcnow


class Run(Base):
    """``listed`` once a profile was accepted; ``version`` counts the changes of its analysis.

    What the runs list shows is kept here, taken from the analysis when it is stored.  ``search_text`` is the
    case-folded text that a search looks through, so that every engine finds the same.  ``units_per_step`` is
    what a step of its traces holds; an analysis that was pushed says that itself.
    """

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("project_id", "number"),
        Index("ix_runs_listed_created_at_id", "listed", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"))
    number: Mapped[int] = mapped_column(BigInteger)
    name: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(16), default="empty")
    listed: Mapped[bool] = mapped_column(Boolean, default=False)
    version: Mapped[int] = mapped_column(BigInteger, default=0)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)
    source: Mapped[str | None] = mapped_column(Text)
    host: Mapped[str | None] = mapped_column(Text)
    device_name: Mapped[str | None] = mapped_column(Text)
    n_steps: Mapped[int | None] = mapped_column(BigInteger)
    step_time_p50_us: Mapped[float | None] = mapped_column(Double)
    regime: Mapped[str | None] = mapped_column(String(16))
    regime_confidence: Mapped[str | None] = mapped_column(String(16))
    grade: Mapped[str | None] = mapped_column(String(16))
    parts_us: Mapped[dict[str, float] | None] = mapped_column(JSON(none_as_null=True))
    job_id: Mapped[str | None] = mapped_column(Id)
    problem: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    units_per_step: Mapped[dict[str, float] | None] = mapped_column(JSON(none_as_null=True))
    search_text: Mapped[str] = mapped_column(Text, default="")
