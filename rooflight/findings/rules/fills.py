"""Tensors that are filled with a constant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.attribution.intervals import measure, union_of
from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import GpuKind


@rule(
    "needless-fills",
    "Tensors are filled before they are written",
    regime="memory",
    why="A fill writes every byte once more.",
    fix="zero_grad(set_to_none=True); torch.empty instead of torch.zeros where everything is written "
    "anyway; the "
    "first of several sums may write instead of add.",
    false_alarms="Padding, masks and accumulators need their zeros.",
)
def fills(facts: Facts) -> Iterator[Found]:
    """Fill kernels, and memsets while nothing else runs."""
    filling = [i for i, g, _ in facts.kernels() if g.name.family == "fill"]
    memsets = facts.exposed(facts.rows(facts.timeline.gpu.kind == np.int8(GpuKind.MEMSET)), "copy")
    when = union_of(facts.instants_of(filling), memsets)
    if when.size:
        seen = Seen(amount(facts, when), groups=facts.most(filling))
        yield Found.over(when, (seen,), float(measure(when)), "none of them is needed")
