"""Machines whose agents report, and their devices."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Float, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id, UtcDateTime, new_id


class HostRow(Base):
    """``scope`` is the project of the token that reported, or empty; ``skew_s`` the server's clock less the
    host's at the last push; ``dropped`` the batches that its agent gave up, by kind, since the first."""

    __tablename__ = "hosts"
    __table_args__ = (UniqueConstraint("scope", "name", name="uq_hosts_scope_name"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    scope: Mapped[str] = mapped_column(Id)
    name: Mapped[str] = mapped_column(Text)
    first_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    skew_s: Mapped[float | None] = mapped_column(Float(53))
    dropped: Mapped[dict[str, Any]] = mapped_column(JSON)


class DeviceRow(Base):
    """A device is its UUID within a scope.  ``state`` and ``name`` are those of the newest window, which ends
    at ``latest_us`` of the host's clock; ``last_seen`` is the server's."""

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("scope", "uuid", name="uq_devices_scope_uuid"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True, default=new_id)
    scope: Mapped[str] = mapped_column(Id)
    uuid: Mapped[str] = mapped_column(String(200))
    host_id: Mapped[str | None] = mapped_column(Id, ForeignKey("hosts.id"), index=True)
    name: Mapped[str | None] = mapped_column(Text)
    parent_uuid: Mapped[str | None] = mapped_column(Text)
    state: Mapped[str | None] = mapped_column(Text)
    first_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    latest_us: Mapped[int] = mapped_column(BigInteger)
    skew_s: Mapped[float | None] = mapped_column(Float(53))
