"""Attention whose scores go through memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.findings.scores import LONGEST, Runs, Sizes, dims_of, runs_of
from rooflight.roofline.groups import Group
from rooflight.trace.tables import I64, Mask
from rooflight.units import NS_PER_S

_SHOWN = 3


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
    sizes = Sizes.of(facts)
    runs = runs_of(facts, rows, sizes)
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


def _inner(facts: Facts, rows: I64, sizes: Sizes, runs: Runs) -> tuple[F64, Mask]:
    """Ns between the products of each run, of kernels that go over all the scores; and which these are."""
    of, own = facts.groups.of_event[rows], facts.own_ns[rows]
    n = sizes.softmax[of[runs.softmax]]
    total, part = np.zeros(n.size), np.zeros(rows.size, bool)
    for step in range(1, LONGEST):
        at = np.minimum(runs.first + step, runs.last - 1)
        whole = (runs.first + step < runs.last) & ((at == runs.softmax) | (sizes.touched[of[at]] >= n))
        total += np.where(whole, own[at], 0)
        part[at[whole]] = True
    return total, part


def _spared(facts: Facts, rows: I64, sizes: Sizes, runs: Runs) -> F64:
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


def _products(runs: Runs) -> tuple[I64, I64]:
    return runs.first, runs.last


def _beside_arithmetic(g: Group) -> float:
    """The share of a kernel's time that its FLOPs do not take."""
    if g.bound.compute_ns is None or g.t_ns <= 0:
        return 1.0
    return max(0.0, 1 - g.bound.compute_ns / g.t_ns)


def _seen(facts: Facts, rows: I64, runs: Runs, gain: F64) -> tuple[Seen, ...]:
    """The kinds of runs, whatever their modules: those with the most to gain first."""
    kinds: dict[str, _Kind] = {}
    triples = facts.groups.of_event[rows[np.column_stack((runs.first, runs.softmax, runs.last))]]
    alike, at = np.unique(triples, axis=0, return_inverse=True)
    count, gains = np.bincount(at.ravel()), np.bincount(at.ravel(), gain)
    for triple, n, one in zip(alike.tolist(), count.tolist(), gains.tolist(), strict=True):
        first, softmax, last = (facts.groups.rows[i] for i in triple)
        words = f"{first.op} → {softmax.op} {dims_of(softmax, 0)} → {last.op}"
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
