"""Calibrations on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, FiniteFloat

from app.text import Name, Words
from app.times import Instant, parse

Rate = Annotated[FiniteFloat, Field(ge=1e-9, le=1e9)]


#: A host's clock may be this much ahead; beyond it a measurement would stay the newest for ever.
_AHEAD = timedelta(days=1)


def _instant(text: str) -> str:
    if parse(text) > datetime.now(UTC) + _AHEAD:
        raise ValueError("the time lies in the future: set the clock of the host that measured")
    return text


class ClockIn(BaseModel):
    """One clock while something was measured, in MHz."""

    min: Rate
    median: Rate
    max: Rate


class CalibrationIn(BaseModel):
    """Measured ceilings of one device: rates in TFLOP/s and GB/s, latency in µs."""

    device: Name
    kind: Literal["cpu", "gpu"]
    measured_at: Annotated[str, Field(max_length=64), AfterValidator(_instant)] = Field(
        description="ISO 8601 with offset or Z."
    )
    gemm_tflops: dict[Name, Rate] = Field(default_factory=dict, max_length=64)
    vector_tflops: dict[Name, Rate] = Field(default_factory=dict, max_length=64)
    stream_gbs: Rate | None = None
    copy_gbs: Rate | None = None
    launch_us: Rate | None = None
    uuid: Name | None = None
    host: Words | None = None
    software: dict[Name, Words] = Field(default_factory=dict, max_length=64)
    spread_pct: dict[Name, Annotated[FiniteFloat, Field(ge=0)]] = Field(default_factory=dict, max_length=256)
    conditions: dict[Name, Words] = Field(default_factory=dict, max_length=256)
    confidence: Literal["high", "medium", "low"] | None = Field(
        default=None, description="How sure the figures are; null of one that does not tell."
    )
    confidence_reasons: list[Words] = Field(default_factory=list, max_length=256)
    streams_gbs: dict[Name, Rate] = Field(default_factory=dict, max_length=64)
    link_gbs: dict[Name, Rate] = Field(default_factory=dict, max_length=64)
    p2p_gbs: dict[Name, Rate] = Field(
        default_factory=dict, max_length=256, description="One way to each other GPU of the host."
    )
    samples: dict[Name, Annotated[int, Field(ge=0, le=10**9)]] = Field(default_factory=dict, max_length=256)
    clocks_mhz: dict[Name, ClockIn] = Field(default_factory=dict, max_length=64)


class CalibrationOut(CalibrationIn):
    """A stored calibration."""

    id: str
    created_at: Instant


class BehindOut(BaseModel):
    """A figure of one device that is further below the median of its siblings than noise explains."""

    device: str
    uuid: str | None
    host: str | None
    figure: str = Field(description="As in `spread_pct`; rates only.")
    value: float
    median: float = Field(description="Of the other devices.")
    behind_pct: float
    allowed_pct: float = Field(description="5 %, or 3 spreads where that is more.")
    siblings: int = Field(description="How many other devices have the figure.")


class Siblings(BaseModel):
    """The newest calibration of each device of a model, and which of them are behind."""

    items: list[CalibrationOut]
    behind: list[BehindOut] = Field(description="Farthest behind first.")


class CalibrationPage(BaseModel):
    """Calibrations, newest measurement first."""

    items: list[CalibrationOut]
