"""Kernels with fewer blocks than the device has SMs."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import excess_of
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule


@rule(
    "underfilled-grid",
    "Kernels with fewer blocks than the device has SMs",
    regime="latency",
    why="A block runs on one SM: the SMs that get none stand idle, and with them their share of the memory's "
    "lanes.",
    fix="A larger batch or more heads at once; smaller tiles or a product split along its sums (split-K, "
    "stream-K, as torch.compile(mode='max-autotune') tries); several small calls in one (batched or grouped "
    "products); independent kernels on streams of their own.",
    false_alarms="Kernels of the last, small layers are short whatever their grid: the saving tells whether "
    "they matter.  Where other kernels run beside, the idle SMs are not idle.",
)
def underfilled(facts: Facts) -> Iterator[Found]:
    """Kernels of 5 us and more, under 60 % of both roofs, that launch fewer blocks than there are SMs."""
    few = [i for i, _, v in facts.kernels() if v.regime == "latency" and v.reason == "underfilled"]
    yield from excess_of(facts, few)
