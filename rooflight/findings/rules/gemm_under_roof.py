"""Large matrix products far under their roof."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule

#: Shorter products are a matter of launching, not of their kernel.
_LONG_NS = 20_000
_WORDS = 80
_PRODUCTS = frozenset({"gemm", "conv_fwd", "conv_bwd", "conv_dgrad", "conv_wgrad"})


@rule(
    "gemm-under-roof",
    "Matrix products far under their roof",
    regime="latency",
    why="A product whose sizes are no multiple of the kernel's tile, or whose tiles do not fill a whole "
    "number of "
    "waves over the SMs, leaves a part of the matrix units idle.",
    fix="Pad vocabulary, hidden and head sizes to multiples of 64 (at least 8 for half precision); choose "
    "batch and "
    "sequence so that the tiles fill the SMs; torch.compile(mode='max-autotune') tries other tiles.",
    false_alarms="Clocks under load are lower than the datasheet's: compare with a calibration of this "
    "device.",
)
def gemm_under_roof(facts: Facts) -> Iterator[Found]:
    """Kernels of matrix products and convolutions, of 20 us and more, under 60 % of both their roofs."""
    slow = [
        i
        for i, g, v in facts.kernels()
        if g.cost.family in _PRODUCTS and v.regime == "latency" and g.t_ns >= _LONG_NS
    ]
    if not slow:
        return
    yield Found.over(
        facts.instants_of(slow),
        tuple(Seen(_words(facts, i), groups=(i,)) for i in facts.most(slow)),
        sum(facts.excess_ns(i) for i in slow),
        "they reach their practical roof",
    )


def _words(facts: Facts, i: int) -> str:
    g = facts.groups.rows[i]
    reached = 100 * (g.bound.bound_ns or 0.0) / g.t_ns
    return f"{facts.label(i)} {_tensors(g.dims)}: {reached:.0f} % of its roof"


def _tensors(dims: str | None) -> str:
    """The dims of the arguments that are tensors."""
    return (dims or "").replace(", []", "").replace("[], ", "")[:_WORDS]
