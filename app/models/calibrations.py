"""Measured ceilings of devices."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id, UtcDateTime, new_id, utcnow


class CalibrationRow(Base):
    """``body`` is ``rooflight.calibration.Calibration``; ``device_key`` the hash of the device's name.

    A calibration of a project's token is seen by that project only.
    """

    __tablename__ = "calibrations"
    __table_args__ = (Index("ix_calibrations_device_key_measured_at", "device_key", "measured_at"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    project_id: Mapped[str | None] = mapped_column(Id, ForeignKey("projects.id"))
    device_key: Mapped[str] = mapped_column(String(64))
    device: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(16))
    host: Mapped[str | None] = mapped_column(Text)
    uuid: Mapped[str | None] = mapped_column(Text)
    measured_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utcnow)
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
