"""Many kernels that are too short to use the device."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule


@rule(
    "tiny-kernels",
    "Kernels too short to fill the device",
    regime="latency",
    why="A kernel needs some microseconds to start and to drain, whatever it has to do.",
    fix="torch.compile fuses small elementwise kernels into few; foreach and fused optimizers take all "
    "parameters "
    "in one; a larger batch gives each kernel more to do; CUDA graphs "
    "(torch.compile(mode='reduce-overhead'), torch.cuda.graph) take away the host's part of each launch.",
    false_alarms="A few tiny kernels per step are normal: the saving tells whether they matter.",
)
def tiny_kernels(facts: Facts) -> Iterator[Found]:
    """Kernels under 5 us whose work would take the device less than 60 % of their time."""
    tiny = [i for i, _, v in facts.kernels() if v.regime == "latency" and v.reason == "tiny"]
    if not tiny:
        return
    launches = sum(facts.launches(i) for i in tiny)
    when = facts.instants_of(tiny)
    text = f"{facts.times(launches)} under 5 us, together {amount(facts, when)} of the time"
    assumption = "fused into kernels that take the time of their bytes and FLOPs"
    saving = sum(facts.excess_ns(i) for i in tiny)
    yield Found.over(when, (Seen(text, groups=facts.most(tiny)),), saving, assumption)
