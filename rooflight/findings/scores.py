"""Attention in single kernels: a batched product, a softmax of its scores, a batched product with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.findings.facts import Facts
from rooflight.roofline.groups import Group
from rooflight.trace.tables import I64

#: The places of the two factors among the arguments.
_PRODUCTS = {"aten::bmm": (0, 1), "aten::baddbmm": (1, 2), "aten::baddbmm_": (1, 2)}
_SOFTMAX = frozenset({"aten::_softmax", "aten::softmax", "aten::_softmax_backward_data"})
#: Scale, mask, dropout and casts of the scores.
_BETWEEN = frozenset({"elementwise", "copy", "fill", "dropout"})
#: So many kernels from one product to the other at most.
LONGEST = 16
#: Sizes beyond this are no scores of a device.
_MOST = 1 << 48


@dataclass(frozen=True, slots=True)
class Sizes:
    """Row-aligned with the groups: numbers in the result of a product and in its factors, its rows for each
    of the batch, numbers in the tensor of a softmax; -1 where the group is none.  ``touched`` are the bytes
    that an elementwise kernel reads or writes, the larger, -1 for other kernels.  ``width`` are bytes per
    number of a product's result."""

    out: I64
    left: I64
    right: I64
    rows: I64
    softmax: I64
    touched: I64
    width: F64

    @classmethod
    def of(cls, facts: Facts) -> Sizes:
        groups = facts.groups.rows
        products = [_product(g) for g in groups]
        out, left, right, lines = np.array(products or [(-1, -1, -1, -1)], np.int64).T
        softmax = np.array([_softmax(g) for g in groups], np.int64)
        touched = np.array([_touched(g) for g in groups], np.int64)
        written = np.array([g.cost.bytes_written or 0 for g in groups], np.float64)
        width = np.where(out > 0, written / np.maximum(out, 1), 0.0)
        return cls(out, left, right, lines, softmax, touched, width)


@dataclass(frozen=True, slots=True)
class Runs:
    """Places in the rows of the product before each softmax, of the softmax, of the product after it."""

    first: I64
    softmax: I64
    last: I64


def runs_of(facts: Facts, rows: I64, sizes: Sizes) -> Runs:
    """The runs among these kernels, in the order of their streams and starts."""
    of, stream = facts.groups.of_event[rows], facts.timeline.gpu.stream[rows]
    products, softmax = np.flatnonzero(sizes.out[of] > 0), np.flatnonzero(sizes.softmax[of] > 0)
    place = np.searchsorted(products, softmax)
    inside = (place > 0) & (place < products.size)
    softmax, place = softmax[inside], place[inside]
    first, last = products[place - 1], products[place]
    n = sizes.softmax[of[softmax]]
    fits = (sizes.out[of[first]] == n) & ((sizes.left[of[last]] == n) | (sizes.right[of[last]] == n))
    fits &= (stream[first] == stream[last]) & (last - first <= LONGEST)
    # Between the two products all but the one softmax are elementwise.
    others = np.concatenate(([0], np.cumsum(sizes.touched[of] < 0)))
    fits &= others[last] - others[first + 1] == 1
    return Runs(first[fits], softmax[fits], last[fits])


def _product(g: Group) -> tuple[int, int, int, int]:
    """Numbers in the result, in the left and in the right factor; rows of the left one."""
    places = _PRODUCTS.get(g.op or "")
    if places is None or not g.work.matrix or not g.cost.bytes_written:
        return -1, -1, -1, -1
    left, right = (dims_of(g, place) for place in places)
    if len(left) != 3 or len(right) != 3:
        return -1, -1, -1, -1
    out = left[0] * left[1] * right[2]
    return _limited(out), _limited(prod(left)), _limited(prod(right)), _limited(left[1])


def _softmax(g: Group) -> int:
    return _limited(prod(dims)) if g.op in _SOFTMAX and (dims := dims_of(g, 0)) else -1


def _touched(g: Group) -> int:
    if g.name.family not in _BETWEEN or g.op in _SOFTMAX:
        return -1
    return _limited(max(g.cost.bytes_read or 0, g.cost.bytes_written or 0, 0))


def _limited(n: int) -> int:
    return n if 0 <= n < _MOST else -1


def dims_of(g: Group, place: int) -> list[int]:
    """The dims of an argument; none where they were not recorded."""
    try:
        dims: Any = json.loads(g.dims or "[]")[place]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return dims if isinstance(dims, list) and all(isinstance(d, int) and d >= 0 for d in dims) else []
