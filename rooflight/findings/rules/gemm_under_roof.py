"""Large matrix products far under their roof."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.findings.tiles import filled, sizes_of, tile_of
from rooflight.roofline.groups import Group

#: Shorter products are a matter of launching, not of their kernel.
_LONG_NS = 20_000
_WORDS = 80
#: Under this share of its tiles the rest is worth a word.
_FILLED = 0.8
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
    """Kernels of matrix products and convolutions, of 20 us and more, under 60 % of both their roofs; which
    of them do not fill their tiles to four fifths, and what kept their launches from filling the device."""
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
    whys = [why for why in (_tiles(g), facts.verdicts[i].limiter) if why]
    said = "".join(f"; {why}" for why in whys)
    return f"{facts.label(i)} {_tensors(g.dims)}: {reached:.0f} % of its roof{said}"


def _tiles(g: Group) -> str:
    """How much of its tiles the result fills, where that is little."""
    tile, sizes = tile_of(g.name.name), sizes_of(g)
    if tile is None or sizes is None:
        return ""
    share = filled(sizes, tile)
    if share >= _FILLED:
        return ""
    return f"its {sizes[0]} x {sizes[1]} results fill {100 * share:.0f} % of tiles of {tile[0]} x {tile[1]}"


def _tensors(dims: str | None) -> str:
    """The dims of the arguments that are tensors."""
    return (dims or "").replace(", []", "").replace("[], ", "")[:_WORDS]
