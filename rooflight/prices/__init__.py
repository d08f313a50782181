"""GPU instances and their prices: what we know of public lists, and a user's own.

A price that was not seen is unknown, and an instance is never guessed from the GPUs of a run.
"""

from __future__ import annotations

from rooflight.prices.catalogue import instances
from rooflight.prices.listing import Wanted, find_instance, find_instances, meant, selected, with_own
from rooflight.prices.model import Instance, price_per_gpu_hour
from rooflight.prices.own import read_own

__all__ = [
    "Instance",
    "Wanted",
    "find_instance",
    "find_instances",
    "instances",
    "meant",
    "price_per_gpu_hour",
    "read_own",
    "selected",
    "with_own",
]
