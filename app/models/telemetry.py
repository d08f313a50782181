"""What was measured of devices over time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id


class TelemetryRow(Base):
    """A window, or a sample, whose two times are one.  Times are whole microseconds since the epoch by the
    host's clock; ``fields`` are as they were sent."""

    __tablename__ = "telemetry"

    device_id: Mapped[str] = mapped_column(Id, ForeignKey("devices.id"), primary_key=True)
    t_start_us: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    t_end_us: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    is_sample: Mapped[bool] = mapped_column(Boolean, primary_key=True)
    fields: Mapped[dict[str, Any]] = mapped_column(JSON)
