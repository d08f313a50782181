"""The host cannot launch as fast as the device works."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.attribution.intervals import Set, intersection, measure, union_of
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import LEAST, rule

#: Launches arrive within 0.1 ms on every device that we have recordings of; what takes this long is held.
_SOON_NS = 1_000_000


@rule(
    "host-bound-dispatch",
    "The device waits for the host to launch work",
    regime="latency",
    why="Each kernel costs the host some microseconds of Python, dispatcher and driver; kernels that are "
    "shorter "
    "leave the device idle between them.",
    fix="torch.compile(mode='reduce-overhead') or CUDA graphs launch many kernels at once; larger batches "
    "make "
    "kernels longer; fused optimizers and fused attention need fewer.",
    false_alarms="Python stack recording (with_stack=True) slows the host: record once more without it "
    "before "
    "you act.",
)
def host_bound(facts: Facts) -> Iterator[Found]:
    """Idle time of the device while the host dispatches ops or a launch is under way.  A launch that takes
    over a millisecond to arrive is told apart, without a saving: that is not the pace of the host."""
    soon, held = _launches(facts)
    when = union_of(facts.idle("dispatch"), soon)
    steps = facts.steps_with_most("dispatch", "launch")
    seen = (Seen(_text(facts, when, soon), steps=steps), *_held(facts, held))
    if measure(when) >= LEAST * facts.wall_ns:
        assumption = "every launch is there before the device needs it, as in a graph"
        yield Found.over(when, seen, float(measure(when)), assumption)
    elif measure(held) >= LEAST * facts.wall_ns:
        yield Found.over(held, seen[1:], None, "what held them is not known")


def _launches(facts: Facts) -> tuple[Set, Set]:
    """The counted instants in which launches were under way, those that arrived soon and those that did
    not."""
    spans = facts.partition.instants("launch")
    late = spans[:, 1] - spans[:, 0] > _SOON_NS
    return intersection(spans[~late], facts.windows), intersection(spans[late], facts.windows)


def _text(facts: Facts, when: Set, soon: Set) -> str:
    dispatch = measure(when) - measure(soon)
    return (
        f"{facts.share(measure(when))} of the time the device waits for launches: {facts.each(dispatch)} "
        f"for ops to be dispatched, {facts.each(measure(soon))} for launches to arrive"
    )


def _held(facts: Facts, held: Set) -> Iterator[Seen]:
    if not len(held):
        return
    amount = f"{facts.each(measure(held))}, {facts.share(measure(held))}"
    yield Seen(
        f"not counted: {amount}, in waits of over 1 ms between launch and start ({facts.times(len(held))}): "
        "a kernel's code is loaded at its first use, or an event, another stream or another process holds it"
    )
