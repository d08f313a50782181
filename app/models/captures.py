"""Orders to record running processes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id, UtcDateTime, new_id, utcnow


class CaptureRow(Base):
    """``order`` is :class:`rooflight.captures.Order`, ``outcome`` the agent's last word on it."""

    __tablename__ = "captures"
    __table_args__ = (Index("ix_captures_host_state_created_at", "host", "state", "created_at"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"))
    host: Mapped[str] = mapped_column(String(200))
    state: Mapped[str] = mapped_column(String(16))
    order: Mapped[dict[str, Any]] = mapped_column(JSON)
    outcome: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)
