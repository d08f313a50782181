"""What a step costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rooflight.hardware.catalogue import by_id
from rooflight.prices import Instance, price_per_gpu_hour
from rooflight.scenarios.model import InstanceCost, Range

_US_PER_HOUR = 3_600_000_000


def cost(step_us: Range | None, usd_per_gpu_hour: float | None, devices: int) -> Range | None:
    """USD of one step on ``devices`` devices; ``None`` without a price or without steps."""
    if step_us is None or usd_per_gpu_hour is None:
        return None
    return step_us.times(usd_per_gpu_hour * devices / _US_PER_HOUR)


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A step on a GPU, as far as it is known, and what that rests on."""

    step_us: Range | None = None
    unknown_share: float | None = None
    fallback: Mapping[str, str] = field(default_factory=dict)


def by_cost(
    instances: Iterable[Instance], step_on: Callable[[str], OnGpu], devices: int
) -> list[InstanceCost]:
    """Every instance, cheapest step first, those of which no price or no step is known last; ``step_on``
    tells the step on a GPU by its id."""
    steps: dict[str, OnGpu] = {}
    rows = []
    for i in instances:
        if i.gpu_id not in steps:
            gpu = by_id().get(i.gpu_id)
            steps[i.gpu_id] = OnGpu() if gpu is None or gpu.device_unit == "card" else step_on(i.gpu_id)
        rows.append(_row(i, steps[i.gpu_id], devices))
    return sorted(rows, key=_order)


def _row(i: Instance, on: OnGpu, devices: int) -> InstanceCost:
    price = price_per_gpu_hour(i)
    usd = None if price is None else float(price)
    return InstanceCost(
        provider=i.provider,
        name=i.name,
        region=i.region,
        gpu_id=i.gpu_id,
        usd_per_gpu_hour=usd,
        date=i.date,
        source=i.source,
        step_time_us=on.step_us,
        cost_per_step=cost(on.step_us, usd, devices),
        unknown_share=on.unknown_share,
        dtype_fallback=dict(on.fallback),
    )


def _order(row: InstanceCost) -> tuple[bool, bool, float, str, str, str]:
    usd = row.cost_per_step
    return (
        usd is None,
        row.usd_per_gpu_hour is None,
        0.0 if usd is None else usd.mid,
        row.provider,
        row.name,
        row.region,
    )
