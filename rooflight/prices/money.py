"""What time costs at a given price (DEFINITIONS §18): nothing is said without one."""

from __future__ import annotations

from dataclasses import dataclass

from rooflight.prices.rate import USD, Rate
from rooflight.protocol import Document

_US_PER_HOUR = 3_600_000_000
STEPS = 1_000
_SIGNS = {USD: "$", "EUR": "€", "GBP": "£"}


@dataclass(frozen=True, slots=True)
class Money:
    """The price of a GPU and hour, and how many GPUs the run has."""

    rate: Rate
    devices: int

    @property
    def per_device_hour(self) -> float:
        return float(self.rate.per_gpu_hour)

    def per_1000_steps(self, us: float) -> float:
        """What ``us`` in each of a thousand steps cost, on all devices."""
        return self.per_device_hour * self.devices * us * STEPS / _US_PER_HOUR

    def per_hour(self, us: float, wall_us: float) -> float | None:
        """What a share of the wall time costs for each hour of running; ``None`` of nothing."""
        return self.per_device_hour * self.devices * us / wall_us if wall_us else None

    def shown(self, value: float | None) -> str:
        """An amount with sensible precision; a dash when unknown."""
        return amount(value, self.rate.currency)


def money(document: Document, rate: Rate | None) -> Money | None:
    """The money of a run; ``None`` without a price, or when no GPU was recorded."""
    devices = devices_used(document)
    return Money(rate, devices) if rate is not None and devices else None


def devices_used(document: Document) -> int:
    """How many GPUs the run has: those that did something in the recordings, and one for each rank that a
    recording knows of; 0 without GPU work."""
    used = sum(sum(d.n_gpu_events > 0 for d in r.devices.values()) for r in document.ranks)
    return max(used, document.world_size or 0) if used else 0


def amount(value: float | None, currency: str = USD) -> str:
    """An amount of money with sensible precision; a dash when unknown."""
    if value is None:
        return "–"
    sign = _SIGNS.get(currency, f"{currency}\u00a0")
    if value >= 1:
        return f"{sign}{value:,.0f}" if value >= 1000 else f"{sign}{value:,.2f}"
    return f"{sign}{value:.3f}" if value >= 0.01 or not value else f"{sign}{value:.2g}"
