"""Kernels that move bytes as fast as the memory gives them."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import of_groups
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule

_SHARE = 0.2


@rule(
    "memory-bound",
    "Kernels at the roof of the memory",
    regime="memory",
    why="They move their bytes as fast as the memory can: no better kernel of the same work exists.",
    fix="Move fewer bytes: fuse neighbours (torch.compile), use bf16 or fp8 where fp32 is moved, keep "
    "activations "
    "in the layout that the next kernel wants, recompute cheap ones.",
    false_alarms="None: this says only where better kernels would not help.",
)
def memory_at_roof(facts: Facts) -> Iterator[Found]:
    """Kernels in the regime `memory` that take a fifth of the time or more."""
    bound = [i for i, _, v in facts.kernels() if v.regime == "memory"]
    time = sum(facts.group_ns(i) for i in bound)
    if time >= _SHARE * facts.wall_ns > 0:
        yield from of_groups(facts, bound, None, "how much fusion saves depends on what can be fused")
