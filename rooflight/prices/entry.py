"""An instance as the command line prints it and the API answers it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rooflight.hardware.catalogue import by_id
from rooflight.hardware.dense import peaks
from rooflight.prices.model import BUILT_IN, Instance, price_per_gpu_hour


def entry(instance: Instance) -> dict[str, Any]:
    """Plain JSON of ``instance``; unknown is null.

    ``bf16_tflops_per_usd`` is dense peak TFLOP/s for each USD per hour, a comparison of data sheets, not of
    what a workload reaches.  ``price_from`` is null for a price of the program's own list.
    """
    per_gpu = price_per_gpu_hour(instance)
    return {
        "provider": instance.provider,
        "instance": instance.name,
        "gpu_id": instance.gpu_id,
        "gpu_count": instance.gpu_count,
        "vcpu": instance.vcpu,
        "ram_gib": instance.ram_gib,
        "gpu_mem_mib": instance.gpu_mem_mib,
        "network_gbps": instance.network_gbps,
        "interconnect": instance.interconnect or None,
        "usd_per_hour": _number(instance.usd_per_hour),
        "usd_per_gpu_hour": _number(per_gpu),
        "bf16_tflops_per_usd": bf16_tflops_per_usd(instance),
        "region": instance.region or None,
        "price_date": instance.date or None,
        "source": instance.source or None,
        "confidence": instance.confidence,
        "notes": instance.notes,
        "price_from": None if instance.origin == BUILT_IN else instance.origin,
    }


def bf16_tflops_per_usd(instance: Instance) -> float | None:
    """Dense bf16 peak in TFLOP/s that a USD per hour rents; ``None`` while price or peak is unknown."""
    per_gpu, gpu = price_per_gpu_hour(instance), by_id().get(instance.gpu_id)
    peak = peaks(gpu).get("bf16") if gpu else None
    return None if per_gpu is None or peak is None else round(peak / float(per_gpu), 3)


def _number(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
