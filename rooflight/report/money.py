"""What time costs at a given price (DEFINITIONS §18): nothing is said without one."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from rooflight.protocol import Document

_US_PER_HOUR = 3_600_000_000
STEPS = 1_000


@dataclass(frozen=True, slots=True)
class Money:
    """The price of a GPU and hour in USD, and how many GPUs the recordings show."""

    usd_per_gpu_hour: Decimal
    devices: int

    def per_1000_steps(self, us: float) -> float:
        """USD of ``us`` in each of a thousand steps, on all devices."""
        return float(self.usd_per_gpu_hour) * self.devices * us * STEPS / _US_PER_HOUR

    def per_hour(self, us: float, wall_us: float) -> float | None:
        """USD that a share of the wall time costs for each hour of running; ``None`` of nothing."""
        return float(self.usd_per_gpu_hour) * self.devices * us / wall_us if wall_us else None


def money(document: Document, usd_per_gpu_hour: Decimal | None) -> Money | None:
    """The money of a run; ``None`` without a price, or when no GPU was recorded."""
    devices = sum(len(r.devices) for r in document.ranks)
    return Money(usd_per_gpu_hour, devices) if usd_per_gpu_hour is not None and devices else None


def usd(value: float | None) -> str:
    """Dollars with sensible precision; a dash when unknown."""
    if value is None:
        return "–"
    if value >= 1:
        return f"${value:,.0f}" if value >= 1000 else f"${value:,.2f}"
    return f"${value:.3f}" if value >= 0.01 or not value else f"${value:.2g}"
