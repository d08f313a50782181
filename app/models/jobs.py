"""Work that was accepted and must be done: durable rows, taken under a lease."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id, UtcDateTime, new_id, utcnow

QUEUED, RUNNING, DONE, FAILED, REFUSED = "queued", "running", "done", "failed", "refused"
MAX_ATTEMPTS = 3


class Job(Base):
    """The analysis of one trace.  ``worker`` names the process that holds the lease."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("ix_jobs_state_created_at", "state", "created_at"),
        Index("ix_jobs_run_id_state", "run_id", "state"),
        Index("ix_jobs_blob_id", "blob_id"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"))
    # No foreign key: the blob of a refused trace is deleted, its job stays.
    blob_id: Mapped[str] = mapped_column(String(64))
    source: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(16), default=QUEUED)
    stage: Mapped[str | None] = mapped_column(String(32))
    attempts: Mapped[int] = mapped_column(BigInteger, default=0)
    worker: Mapped[str | None] = mapped_column(Text)
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    heartbeat_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    problem: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
