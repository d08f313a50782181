"""An instance of a provider and its price."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

#: ``origin`` of what travels with the program.
BUILT_IN = "rooflight"


@dataclass(frozen=True, slots=True)
class Instance:
    """What a provider rents out under one name, and its on-demand price in one region.

    ``None`` and an empty text are unknown.  ``usd_per_hour`` is for the whole instance.  ``date`` is the
    day of the price (ISO), or "snapshot" or "undated" where its source does not tell the day.  ``origin``
    is the file of a user's own price, else ``BUILT_IN``.
    """

    provider: str
    name: str
    gpu_id: str
    gpu_count: int | None = None
    vcpu: int | None = None
    ram_gib: float | None = None
    gpu_mem_mib: int | None = None
    network_gbps: float | None = None
    interconnect: str = ""
    usd_per_hour: Decimal | None = None
    region: str = ""
    date: str = ""
    source: str = ""
    confidence: str = "low"
    notes: str = ""
    also: tuple[str, ...] = ()
    origin: str = BUILT_IN

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that the provider lists it under."""
        return (self.name, *self.also)


def price_per_gpu_hour(instance: Instance) -> Decimal | None:
    """USD for one GPU and hour, ``None`` while price or number of GPUs is unknown."""
    if instance.usd_per_hour is None or not instance.gpu_count:
        return None
    return instance.usd_per_hour / instance.gpu_count
