"""What a step costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rooflight.hardware.catalogue import by_id
from rooflight.prices import Instance, price_per_gpu_hour
from rooflight.scenarios.model import InstanceCost, Range

_US_PER_HOUR = 3_600_000_000


def cost(step_us: Range | None, usd_per_gpu_hour: float | None, devices: int) -> Range | None:
    """USD of one step on ``devices`` devices; ``None`` without a price or without steps."""
    if step_us is None or usd_per_gpu_hour is None:
        return None
    return step_us.times(usd_per_gpu_hour * devices / _US_PER_HOUR)


def by_cost(
    instances: Iterable[Instance], step_on: Callable[[str], Range | None], devices: int
) -> list[InstanceCost]:
    """Every instance whose GPU is in the catalogue, cheapest step first, those without a price last;
    ``step_on`` tells the step time on a GPU by its id."""
    times: dict[str, Range | None] = {}
    rows = []
    for i in instances:
        gpu = by_id().get(i.gpu_id)
        if gpu is None or gpu.device_unit == "card":
            continue
        if i.gpu_id not in times:
            times[i.gpu_id] = step_on(i.gpu_id)
        rows.append(_row(i, times[i.gpu_id], devices))
    return sorted(rows, key=_order)


def _row(i: Instance, step_us: Range | None, devices: int) -> InstanceCost:
    price = price_per_gpu_hour(i)
    usd = None if price is None else float(price)
    return InstanceCost(
        i.provider, i.name, i.region, i.gpu_id, usd, i.date, i.source, step_us, cost(step_us, usd, devices)
    )


def _order(row: InstanceCost) -> tuple[bool, float, str, str, str]:
    usd = row.cost_per_step
    return usd is None, 0.0 if usd is None else usd.mid, row.provider, row.name, row.region
