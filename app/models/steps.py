"""Rows of the step table."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Double, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id


class StepRow(Base):
    """``source`` is recorded, inferred or cpu; ``idx`` the place in that list; ``body`` the whole step."""

    __tablename__ = "steps"

    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"), primary_key=True)
    rank: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    source: Mapped[str] = mapped_column(String(16), primary_key=True)
    idx: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    n: Mapped[int] = mapped_column(BigInteger)
    step_time_us: Mapped[float] = mapped_column(Double)
    device: Mapped[str | None] = mapped_column(Text)
    regime: Mapped[str | None] = mapped_column(String(16))
    attainable_us: Mapped[float | None] = mapped_column(Double)
    bound_us: Mapped[float | None] = mapped_column(Double)
    body: Mapped[dict[str, object]] = mapped_column(JSON)
