"""What the agent measured of a device: its ceilings, and how sure they are."""

from __future__ import annotations

from msgspec import Struct, field


class Clock(Struct):
    """One clock while something was measured, in MHz."""

    min: float
    median: float
    max: float


class Calibration(Struct):
    """Measured ceilings of one device.  Rates in TFLOP/s and GB/s, latency in µs.

    ``confidence`` (high, medium, low) is how sure it is, ``None`` of a document from before it was told;
    ``confidence_reasons`` say why.  ``streams_gbs`` has triad, copy and read; ``link_gbs`` h2d and d2h;
    ``p2p_gbs`` one way to the GPU of each UUID.
    """

    device: str
    kind: str
    measured_at: str
    gemm_tflops: dict[str, float] = field(default_factory=dict)
    vector_tflops: dict[str, float] = field(default_factory=dict)
    stream_gbs: float | None = None
    copy_gbs: float | None = None
    launch_us: float | None = None
    uuid: str | None = None
    host: str | None = None
    software: dict[str, str] = field(default_factory=dict)
    spread_pct: dict[str, float] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    confidence: str | None = None
    confidence_reasons: list[str] = field(default_factory=list)
    streams_gbs: dict[str, float] = field(default_factory=dict)
    link_gbs: dict[str, float] = field(default_factory=dict)
    p2p_gbs: dict[str, float] = field(default_factory=dict)
    samples: dict[str, int] = field(default_factory=dict)
    clocks_mhz: dict[str, Clock] = field(default_factory=dict)
