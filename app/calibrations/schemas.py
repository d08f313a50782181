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
    spread_pct: dict[Name, Annotated[FiniteFloat, Field(ge=0)]] = Field(default_factory=dict, max_length=64)
    conditions: dict[Name, Words] = Field(default_factory=dict, max_length=64)


class CalibrationOut(CalibrationIn):
    """A stored calibration."""

    id: str
    created_at: Instant


class CalibrationPage(BaseModel):
    """Calibrations, newest measurement first."""

    items: list[CalibrationOut]
