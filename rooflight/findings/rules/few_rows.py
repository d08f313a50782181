"""Matrix products of so few rows that reading the weights is all there is to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod

from rooflight.findings.evidence import of_groups
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule
from rooflight.roofline.groups import Group

_SHARE = 0.3
_FEW = 4
#: The argument whose rows are the batch; a vector is one row.
_BATCH = {"aten::mm": 0, "aten::addmm": 1, "aten::linear": 0, "aten::_scaled_mm": 0, "aten::addmm_": 1}
_VECTOR = frozenset({"aten::mv", "aten::addmv", "aten::addmv_"})
#: Products without weights: every matrix of a batch is read for its own rows only.
_OWN = frozenset({"aten::bmm", "aten::baddbmm", "aten::dot", "aten::vdot"})


@rule(
    "few-rows",
    "Weights are read for a few rows at a time",
    regime="memory",
    why="A product reads all its weights whatever the number of rows: with one to four rows the memory is "
    "busy and the matrix units have next to nothing to do.",
    fix="Serve several requests at once (continuous batching); speculative decoding, which checks several "
    "tokens in one pass; weights in fp8, int8 or int4, of which there are fewer bytes.",
    false_alarms="Where one answer at a time is wanted as soon as can be, the batch is small by design: then "
    "only smaller weights help.",
)
def few_rows(facts: Facts) -> Iterator[Found]:
    """Matrix products of at most four rows, at the roof of the memory, that take 30 % of the time or more."""
    few = [i for i, g, v in facts.kernels() if v.regime == "memory" and _has_few_rows(g)]
    time = sum(facts.group_ns(i) for i in few)
    if time >= _SHARE * facts.wall_ns > 0:
        yield from of_groups(facts, few, None, "how many requests could share a pass is not recorded")


def _has_few_rows(g: Group) -> bool:
    if g.op in _OWN:
        return False
    if g.op in _VECTOR or g.name.family == "gemv":
        return True
    rows = _rows(g)
    return g.work.matrix and rows is not None and 0 < rows <= _FEW


def _rows(g: Group) -> int | None:
    """The rows of the product: all dims of its left side but the last."""
    at = _BATCH.get(g.op or "")
    if at is None or not g.dims:
        return None
    try:
        dims = json.loads(g.dims)[at]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if isinstance(dims, list) and dims and all(isinstance(d, int) for d in dims):
        return prod(dims[:-1])
    return None
