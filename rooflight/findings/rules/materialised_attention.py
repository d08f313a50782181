"""Attention whose scores go through memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.roofline.groups import Group
from rooflight.trace.tables import I64, Mask
from rooflight.units import NS_PER_S

#: The places of the two factors among the arguments.
_PRODUCTS = {"aten::bmm": (0, 1), "aten::baddbmm": (1, 2), "aten::baddbmm_": (1, 2)}
_SOFTMAX = frozenset({"aten::_softmax", "aten::softmax", "aten::_softmax_backward_data"})
#: Scale, mask, dropout and casts of the scores.
_BETWEEN = frozenset({"elementwise", "copy", "fill", "dropout"})
_LONGEST = 16
_SHOWN = 3
#: Sizes beyond this are no scores of a device.
_MOST = 1 << 48


@rule(
    "materialised-attention",
    "Attention writes its scores to memory",
    regime="memory",
    why="The scores grow with the square of the sequence; each of product, scale, mask, softmax and dropout "
    "writes them and the next reads them back, though a tile of them would fit on the SM.",
    fix="torch.nn.functional.scaled_dot_product_attention (attn_implementation='sdpa' or "
    "'flash_attention_2' in Transformers) does all of it in one kernel; FlexAttention for masks and biases "
    "that it does not take.",
    false_alarms="Scores that are asked for (output_attentions) have to be written.  The backward pass of a "
    "fused kernel works the scores out again, which costs one more product.  Short sequences stay in the "
    "cache.",
)
def materialised_attention(facts: Facts) -> Iterator[Found]:
    """Batched product, softmax (or its gradient) of as many numbers as come out of it, batched product that
    takes as many, in a row on one stream, with nothing but elementwise kernels in between."""
    rows = facts.kernel_rows
    sizes = _Sizes.of(facts)
    runs = _runs(facts, rows, sizes)
    if not runs.softmax.size:
        return
    inner, part = _inner(facts, rows, sizes, runs)
    gain = inner + _spared(facts, rows, sizes, runs)
    part[runs.first] = part[runs.last] = True
    yield Found.over(
        facts.instants(rows[part]),
        _seen(facts, rows, runs, gain),
        float(gain.sum()),
        "one kernel does it all: what lies between the products goes, and the products neither "
        "write nor read the scores",
    )


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Row-aligned with the groups: numbers in the result of a product and in its factors, in the tensor of a
    softmax; -1 where the group is none.  ``touched`` are the bytes that an elementwise kernel reads or
    writes, the larger, -1 for other kernels.  ``width`` are bytes per number of a product's result."""

    out: I64
    left: I64
    right: I64
    softmax: I64
    touched: I64
    width: F64

    @classmethod
    def of(cls, facts: Facts) -> _Sizes:
        groups = facts.groups.rows
        products = [_product(g) for g in groups]
        out, left, right = np.array(products or [(-1, -1, -1)], np.int64).T
        softmax = np.array([_softmax(g) for g in groups], np.int64)
        touched = np.array([_touched(g) for g in groups], np.int64)
        written = np.array([g.cost.bytes_written or 0 for g in groups], np.float64)
        return cls(out, left, right, softmax, touched, np.where(out > 0, written / np.maximum(out, 1), 0.0))


@dataclass(frozen=True, slots=True)
class _Runs:
    """Places in the rows of the product before each softmax, of the softmax, of the product after it."""

    first: I64
    softmax: I64
    last: I64


def _runs(facts: Facts, rows: I64, sizes: _Sizes) -> _Runs:
    of, stream = facts.groups.of_event[rows], facts.timeline.gpu.stream[rows]
    products, softmax = np.flatnonzero(sizes.out[of] > 0), np.flatnonzero(sizes.softmax[of] > 0)
    place = np.searchsorted(products, softmax)
    inside = (place > 0) & (place < products.size)
    softmax, place = softmax[inside], place[inside]
    first, last = products[place - 1], products[place]
    n = sizes.softmax[of[softmax]]
    fits = (sizes.out[of[first]] == n) & ((sizes.left[of[last]] == n) | (sizes.right[of[last]] == n))
    fits &= (stream[first] == stream[last]) & (last - first <= _LONGEST)
    # Between the two products all but the one softmax are elementwise.
    others = np.concatenate(([0], np.cumsum(sizes.touched[of] < 0)))
    fits &= others[last] - others[first + 1] == 1
    return _Runs(first[fits], softmax[fits], last[fits])


def _inner(facts: Facts, rows: I64, sizes: _Sizes, runs: _Runs) -> tuple[F64, Mask]:
    """Ns between the products of each run, of kernels that go over all the scores; and which these are."""
    of, own = facts.groups.of_event[rows], facts.own_ns[rows]
    n = sizes.softmax[of[runs.softmax]]
    total, part = np.zeros(n.size), np.zeros(rows.size, bool)
    for step in range(1, _LONGEST):
        at = np.minimum(runs.first + step, runs.last - 1)
        whole = (runs.first + step < runs.last) & ((at == runs.softmax) | (sizes.touched[of[at]] >= n))
        total += np.where(whole, own[at], 0)
        part[at[whole]] = True
    return total, part


def _spared(facts: Facts, rows: I64, sizes: _Sizes, runs: _Runs) -> F64:
    """Ns that the products of each run take for the scores: at most what their FLOPs leave of their time."""
    memory = facts.roofs.memory
    per_byte = NS_PER_S / memory.practical if memory is not None and memory.practical else 0.0
    of, own = facts.groups.of_event[rows], facts.own_ns[rows]
    beside = np.array([_beside_arithmetic(g) for g in facts.groups.rows])
    n = sizes.softmax[of[runs.softmax]]
    both = [
        np.minimum(n * sizes.width[of[at]] * per_byte, own[at] * beside[of[at]]) for at in _products(runs)
    ]
    spared: F64 = both[0] + both[1]
    return spared


def _products(runs: _Runs) -> tuple[I64, I64]:
    return runs.first, runs.last


def _beside_arithmetic(g: Group) -> float:
    """The share of a kernel's time that its FLOPs do not take."""
    if g.bound.compute_ns is None or g.t_ns <= 0:
        return 1.0
    return max(0.0, 1 - g.bound.compute_ns / g.t_ns)


def _product(g: Group) -> tuple[int, int, int]:
    """Numbers in the result, in the left and in the right factor."""
    places = _PRODUCTS.get(g.op or "")
    if places is None or not g.work.matrix or not g.cost.bytes_written:
        return -1, -1, -1
    left, right = (_dims(g, place) for place in places)
    if len(left) != 3 or len(right) != 3:
        return -1, -1, -1
    return _limited(left[0] * left[1] * right[2]), _limited(prod(left)), _limited(prod(right))


def _softmax(g: Group) -> int:
    return _limited(prod(dims)) if g.op in _SOFTMAX and (dims := _dims(g, 0)) else -1


def _touched(g: Group) -> int:
    if g.name.family not in _BETWEEN or g.op in _SOFTMAX:
        return -1
    return _limited(max(g.cost.bytes_read or 0, g.cost.bytes_written or 0, 0))


def _limited(n: int) -> int:
    return n if 0 <= n < _MOST else -1


def _dims(g: Group, place: int) -> list[int]:
    """The dims of an argument; none where they were not recorded."""
    try:
        dims: Any = json.loads(g.dims or "[]")[place]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return dims if isinstance(dims, list) and all(isinstance(d, int) and d >= 0 for d in dims) else []


def _seen(facts: Facts, rows: I64, runs: _Runs, gain: F64) -> tuple[Seen, ...]:
    """The kinds of runs, whatever their modules: those with the most to gain first."""
    kinds: dict[str, _Kind] = {}
    triples = facts.groups.of_event[rows[np.column_stack((runs.first, runs.softmax, runs.last))]]
    alike, at = np.unique(triples, axis=0, return_inverse=True)
    count, gains = np.bincount(at.ravel()), np.bincount(at.ravel(), gain)
    for triple, n, one in zip(alike.tolist(), count.tolist(), gains.tolist(), strict=True):
        first, softmax, last = (facts.groups.rows[i] for i in triple)
        words = f"{first.op} → {softmax.op} {_dims(softmax, 0)} → {last.op}"
        kinds.setdefault(words, _Kind()).add(triple, n, one)
    most = sorted(kinds.items(), key=lambda kind: (-kind[1].gain_ns, kind[0]))[:_SHOWN]
    return tuple(
        Seen(f"{words}: {facts.times(kind.n)}, up to {facts.each(kind.gain_ns)}", facts.most(kind.groups))
        for words, kind in most
    )


@dataclass(slots=True)
class _Kind:
    """Runs of one kind: how many, what they would gain, the groups of their three kernels."""

    n: int = 0
    gain_ns: float = 0.0
    groups: set[int] = field(default_factory=set)

    def add(self, groups: list[int], n: int, gain_ns: float) -> None:
        self.n, self.gain_ns = self.n + n, self.gain_ns + gain_ns
        self.groups.update(groups)
