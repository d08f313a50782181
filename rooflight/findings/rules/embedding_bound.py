"""Time that goes into looking up rows of tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.findings.evidence import of_rows
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule
from rooflight.trace.tables import I64, among

_FAMILIES = frozenset({"embedding", "embedding_bwd"})
#: Lookups by the general kernels for indices: only their op tells.
_OPS = ("aten::embedding", "aten::_embedding_bag")
_SHARE = 0.2


@rule(
    "embedding-bound",
    "Lookups in embedding tables take much of the time",
    regime="memory",
    why="A lookup reads rows at random and computes next to nothing: the memory is all that counts, and the "
    "gradient writes the same rows again.",
    fix="Tables in bf16 or int8; one fused lookup for all tables (FBGEMM's table-batched embeddings) with "
    "the optimizer in its backward pass; each index once per batch; hot rows cached; large tables split "
    "over ranks.",
    false_alarms="Models whose parameters are nearly all embeddings have little else to do.",
)
def embedding_bound(facts: Facts) -> Iterator[Found]:
    """Kernels of embedding lookups and their gradients that take a fifth of the time or more."""
    rows = _lookups(facts)
    time = int(facts.own_ns[rows].sum())
    if time >= _SHARE * facts.wall_ns > 0:
        yield of_rows(facts, rows, None, "which rows are read twice is not recorded")


def _lookups(facts: Facts) -> I64:
    rows = facts.kernel_rows
    by_family = np.array([*(g.name.family in _FAMILIES for g in facts.groups.rows), False], bool)
    ops = np.array([i for i, n in enumerate(facts.timeline.names) if n.startswith(_OPS)], np.int64)
    by_op = among(facts.op_names[rows], ops) | among(facts.outer_names[rows], ops)
    found: I64 = rows[by_family[facts.groups.of_event[rows]] | by_op]
    return found
