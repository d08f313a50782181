"""What is said of a host whose clock is wrong."""

from __future__ import annotations

from app.telemetry.schemas import SKEW_S, SkewFlag


def skew_flags(skew_s: float | None) -> list[SkewFlag]:
    """The flag of a skew (this server's clock less the host's) of more than 5 s."""
    if skew_s is None or abs(skew_s) <= SKEW_S:
        return []
    side = "behind" if skew_s > 0 else "ahead of"
    off = abs(skew_s)
    return [
        SkewFlag(code="clock_skew", value=off, detail=f"the host's clock is {off:g} s {side} the server's")
    ]
