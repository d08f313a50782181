"""Kernels of which too few warps fit on an SM."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import excess_of
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule


@rule(
    "low-occupancy",
    "Too few warps fit on an SM",
    regime="latency",
    why="With few warps resident, the SM has nothing to switch to while it waits for memory.",
    fix="Fewer registers (launch bounds, smaller tiles) or less shared memory per block; another block "
    "size; for "
    "Triton kernels other num_warps and num_stages.",
    false_alarms="Kernels built for few warps (large tiles with asynchronous copies) do well at low "
    "occupancy; they "
    "are not listed when they reach 60 % of a roof.",
)
def low_occupancy(facts: Facts) -> Iterator[Found]:
    """Kernels under 60 % of both roofs of which less than a quarter of an SM's warps can be resident."""
    low = [i for i, _, v in facts.kernels() if v.regime == "latency" and v.reason == "low_occupancy"]
    yield from excess_of(facts, low)
