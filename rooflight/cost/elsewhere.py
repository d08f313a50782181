"""Costs of launches whose op was found in another recording."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from rooflight.cost.launches import LaunchCosts
from rooflight.cost.model import INFERRED, MODELLED, Cost
from rooflight.trace.tables import I64


def from_elsewhere(costs: LaunchCosts, rows: I64, source: str) -> LaunchCosts:
    """The costs, those of ``rows`` of the GPU events marked as resting on the ops of ``source``: that these
    launched them is inferred, by the order of kernels, and so is what it costs."""
    used, place = np.unique(costs.index[rows], return_inverse=True)
    table = {cost: i for i, cost in enumerate(costs.costs)}
    numbers = [table.setdefault(_inferred(costs.costs[i], source), len(table)) for i in used.tolist()]
    index = costs.index.copy()
    index[rows] = np.array(numbers, np.int32)[place.ravel()]
    return replace(costs, costs=tuple(table), index=index)


def _inferred(cost: Cost, source: str) -> Cost:
    if cost.origin != MODELLED:
        return cost
    return msgspec.structs.replace(
        cost, origin=INFERRED, reason=f"op and inputs as in the eager recording {source}"
    )
