"""The host cannot launch as fast as the device works."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.attribution.intervals import measure
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule


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
    """Idle time of the device while the host dispatches ops or a launch is under way."""
    dispatch, launch = facts.parts["dispatch"], facts.parts["launch"]
    text = (
        f"{facts.share(dispatch + launch)} of the time the device waits for launches: {facts.each(dispatch)} "
        f"for ops to be dispatched, {facts.each(launch)} for launches to arrive"
    )
    when = facts.idle("dispatch", "launch")
    seen = Seen(text, steps=facts.steps_with_most("dispatch", "launch"))
    assumption = "every launch is there before the device needs it, as in a graph"
    yield Found.over(when, (seen,), float(measure(when)), assumption)
