"""Rows of the kernel table: the fields of ``rooflight.protocol.Kernel`` under their own names."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Double, ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import Base, Id


class KernelRow(Base):
    """``idx`` is the row's place in its rank's list; ``on_cpu`` for ops of a run without GPU work."""

    __tablename__ = "kernels"

    run_id: Mapped[str] = mapped_column(Id, ForeignKey("runs.id"), primary_key=True)
    rank: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    on_cpu: Mapped[bool] = mapped_column(Boolean, primary_key=True)
    idx: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(Text)
    short_name: Mapped[str] = mapped_column(Text)
    family: Mapped[str | None] = mapped_column(Text)
    dtype: Mapped[str | None] = mapped_column(Text)
    op: Mapped[str | None] = mapped_column(Text)
    module: Mapped[str | None] = mapped_column(Text)
    module_path: Mapped[str | None] = mapped_column(Text)
    input_dims: Mapped[str | None] = mapped_column(Text)
    input_types: Mapped[str | None] = mapped_column(Text)
    device: Mapped[str] = mapped_column(Text)
    count: Mapped[int] = mapped_column(BigInteger)
    time_us: Mapped[float] = mapped_column(Double)
    share_pct: Mapped[float | None] = mapped_column(Double)
    min_us: Mapped[float | None] = mapped_column(Double)
    p50_us: Mapped[float | None] = mapped_column(Double)
    p95_us: Mapped[float | None] = mapped_column(Double)
    p99_us: Mapped[float | None] = mapped_column(Double)
    max_us: Mapped[float | None] = mapped_column(Double)
    flops: Mapped[int | None] = mapped_column(BigInteger)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    origin: Mapped[str] = mapped_column(Text)
    ai: Mapped[float | None] = mapped_column(Double)
    achieved_tflops: Mapped[float | None] = mapped_column(Double)
    achieved_gbs: Mapped[float | None] = mapped_column(Double)
    bound_us: Mapped[float | None] = mapped_column(Double)
    roof_fraction: Mapped[float | None] = mapped_column(Double)
    roof_side: Mapped[str | None] = mapped_column(Text)
    regime: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    cost_reason: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    above_peak: Mapped[bool] = mapped_column(Boolean)
    histogram: Mapped[list[int]] = mapped_column(JSON)
    exclusive_us: Mapped[float | None] = mapped_column(Double)
    steps_exclusive_us: Mapped[float | None] = mapped_column(Double)
    steps_count: Mapped[int | None] = mapped_column(BigInteger)
    matrix: Mapped[bool | None] = mapped_column(Boolean)
    blocks: Mapped[int | None] = mapped_column(BigInteger)
    link_bytes: Mapped[int | None] = mapped_column(BigInteger)
    chained_in_bytes: Mapped[int | None] = mapped_column(BigInteger)
    chained_out_bytes: Mapped[int | None] = mapped_column(BigInteger)
    limiter: Mapped[str | None] = mapped_column(Text)
