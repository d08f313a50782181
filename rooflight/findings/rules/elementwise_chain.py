"""Elementwise kernels in a row, each reading what the one before wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import I64, GpuKind, in_order_of
from rooflight.units import NS_PER_S

_FUSABLE = frozenset({"elementwise", "copy", "fill", "dropout"})
_SHOWN = 3
_LONGEST = 8


@rule(
    "elementwise-chain",
    "Elementwise kernels in a row that one could do",
    regime="memory",
    why="Each writes its result to memory and the next reads it back, though a register would have kept it.",
    fix="torch.compile fuses such chains; else a fused op (F.gelu, F.silu with its product, a fused layer "
    "norm or "
    "optimizer) or a small Triton kernel.",
    false_alarms="A result that is kept for the backward pass has to be written all the same: the saving "
    "is then "
    "half of what is said.",
)
def elementwise_chain(facts: Facts) -> Iterator[Found]:
    """Neighbours on one stream, elementwise, casts or fills, of which each reads at least as many bytes as
    the one before wrote."""
    memory = facts.roofs.memory
    if memory is None or not memory.practical:
        return
    rows, written, taken = _fusable(facts)
    chains = list(_chains(facts, rows, written, taken))
    if not chains:
        return
    per_byte = NS_PER_S / memory.practical
    saved = 0.0
    kinds: Counter[tuple[int, ...]] = Counter()
    for chain in chains:
        own = facts.own_ns[rows[chain]]
        # Of each pair the result is neither written nor read; the longest kernel stays.
        whole = int(own.sum())
        gain = min(2 * int(written[chain[:-1]].sum()) * per_byte, whole - int(own.max()))
        saved += gain
        kinds[tuple(facts.groups.of_event[rows[chain]].tolist())] += round(gain)
    yield Found.over(
        facts.instants(rows[np.concatenate(chains)]),
        tuple(_seen(facts, groups, gain) for groups, gain in kinds.most_common(_SHOWN)),
        saved,
        "each chain becomes one kernel; what lies between is neither written nor read",
    )


def _fusable(facts: Facts) -> tuple[I64, I64, I64]:
    """GPU events in the order of their streams and starts; bytes that each writes and reads, -1 for those
    that cannot be fused."""
    gpu = facts.timeline.gpu
    rows = facts.rows(gpu.kind == np.int8(GpuKind.KERNEL))
    rows = rows[in_order_of(gpu.stream[rows], gpu.start[rows])]
    sizes = np.full((len(facts.groups.rows), 2), -1, np.int64)
    for i, g in enumerate(facts.groups.rows):
        if g.name.family in _FUSABLE and g.cost.bytes_written is not None:
            sizes[i] = g.cost.bytes_written, g.cost.bytes_read or 0
    written, taken = sizes[facts.groups.of_event[rows]].T
    return rows, written, taken


def _chains(facts: Facts, rows: I64, written: I64, taken: I64) -> Iterator[I64]:
    """Places in ``rows`` of each chain of two kernels and more."""
    stream = facts.timeline.gpu.stream[rows]
    linked = (written[:-1] > 0) & (taken[1:] >= written[:-1]) & (stream[1:] == stream[:-1])
    linked &= (facts.own_ns[rows[:-1]] > 0) & (facts.own_ns[rows[1:]] > 0)
    borders = np.flatnonzero(np.diff(linked.astype(np.int8), prepend=0, append=0))
    for first, last in pairwise(borders.tolist()):
        if linked[first]:
            yield np.arange(first, last + 1)


def _seen(facts: Facts, groups: tuple[int, ...], gain: float) -> Seen:
    names = [facts.label(i) for i in groups[:_LONGEST]]
    more = f" and {len(groups) - _LONGEST} more" if len(groups) > _LONGEST else ""
    return Seen(f"{' → '.join(names)}{more}: up to {facts.each(gain)}", tuple(dict.fromkeys(groups)))
