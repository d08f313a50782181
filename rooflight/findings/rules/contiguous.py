"""Tensors that are copied so that their elements lie in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.findings.evidence import of_rows
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule
from rooflight.findings.rules.casts import is_cast
from rooflight.trace.tables import I64, Mask, among

_ASKING = ("aten::contiguous", "aten::clone")
_COPYING = ("aten::copy_",)


@rule(
    "contiguous-copies",
    "Tensors are copied to lie in order",
    regime="memory",
    why="contiguous() after a transpose, and reshape() where no view will do, read and write the whole "
    "tensor and compute nothing.",
    fix="Leave out contiguous() before ops that take strides (matrix products, scaled_dot_product_attention, "
    "elementwise ops); split heads by view and transpose only; keep a weight that is transposed each time in "
    "the order that is wanted; torch.compile folds such copies into their neighbours.",
    false_alarms="A kernel that would read the strided tensor instead may take longer than it does now; "
    "some kernels ask for tensors in order.",
)
def contiguous(facts: Facts) -> Iterator[Found]:
    """Copy kernels between tensors of one type that aten::contiguous or aten::clone asked for."""
    copies = [g.name.family == "copy" and not is_cast(g) for g in facts.groups.rows]
    rows = facts.kernel_rows
    rows = rows[np.array(copies, bool)[facts.groups.of_event[rows]]] if any(copies) else rows[:0]
    rows = rows[_asked_for(facts, rows)]
    if rows.size:
        often = facts.times(int(facts.begins(rows).sum()))
        time = float(facts.own_ns[rows].sum())
        assumption = "none of them is needed: what comes next reads the tensor as it lies"
        yield of_rows(facts, rows, time, assumption, f"{often}, ")


def _asked_for(facts: Facts, rows: I64) -> Mask:
    """Which of the GPU events an op launched that asks for order, or the copy right inside of one."""
    own, around = facts.op_names[rows], facts.outer_names[rows]
    asking, copying = (np.array(facts.timeline.name_ids(*n), np.int64) for n in (_ASKING, _COPYING))
    found: Mask = among(own, asking) | (among(own, copying) & among(around, asking))
    return found
