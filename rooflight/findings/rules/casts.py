"""Tensors that are only cast to another type."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rooflight.findings.evidence import of_groups
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule
from rooflight.roofline.groups import Group


@rule(
    "casts",
    "Tensors are cast to another type",
    regime="memory",
    why="A cast reads and writes the whole tensor and computes nothing.",
    fix="Keep weights in the type that they are used in (a bf16 copy beside the fp32 master, as fused "
    "optimizers "
    "hold); let autocast cover the whole forward pass; torch.compile fuses casts into their neighbours.",
    false_alarms="The one cast of an input at the start of a step is needed.",
)
def casts(facts: Facts) -> Iterator[Found]:
    """Copy kernels between two types."""
    casting = [i for i, g, _ in facts.kernels() if g.name.family == "copy" and is_cast(g)]
    time = sum(facts.group_ns(i) for i in casting)
    yield from of_groups(facts, casting, time, "none of them is needed")


def is_cast(g: Group) -> bool:
    """aten::copy_ (target, source) of two types, or a kernel whose name tells two."""
    if "->" in (g.name.dtype or ""):
        return True
    if g.op != "aten::copy_" or not g.types:
        return False
    try:
        types = json.loads(g.types)
    except ValueError:
        return False
    return isinstance(types, list) and len(types) > 1 and bool(types[0] and types[1]) and types[0] != types[1]
