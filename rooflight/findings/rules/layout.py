"""Kernels that only turn tensors from one layout to another."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import of_groups
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule


@rule(
    "layout-conversions",
    "Tensors are turned from one layout to another",
    regime="memory",
    why="The convolution wants channels last and the model keeps channels first (or the other way round), "
    "so each "
    "call turns its tensors first.",
    fix="model.to(memory_format=torch.channels_last), and the input too; then look for ops that fall back.",
    false_alarms="Some libraries convert inside one kernel, which no name shows: the saving is then larger.",
)
def layout(facts: Facts) -> Iterator[Found]:
    """Kernels such as nchwToNhwc and batched_transpose, which compute nothing."""
    turning = [i for i, g, _ in facts.kernels() if g.name.family == "layout"]
    time = sum(facts.group_ns(i) for i in turning)
    yield from of_groups(facts, turning, time, "every tensor is kept in the layout that its kernels want")
