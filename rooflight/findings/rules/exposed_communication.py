"""Communication that no computation hides."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule


@rule(
    "exposed-communication",
    "Communication that no computation hides",
    regime="communication",
    why="While only collectives run, the units for arithmetic stand idle.",
    fix="Let gradients travel while the backward pass still runs (DDP's buckets, FSDP's prefetch); choose "
    "bucket "
    "sizes that the link fills; give the communication stream priority; send less (bf16 gradients, fewer "
    "ranks "
    "per shard).",
    false_alarms="What looks like communication may be waiting for a slower rank: with all ranks in one "
    "run, wait "
    "and transfer are told apart.",
)
def exposed_communication(facts: Facts) -> Iterator[Found]:
    """Time in which communication kernels run and no other kernel does."""
    time = facts.parts["communication"]
    yield Found(
        seen=(
            Seen(
                f"{facts.each(time)}, {facts.share(time)}, only communication runs",
                groups=tuple(
                    i
                    for i, v in enumerate(facts.verdicts)
                    if v.regime == "communication" and facts.groups.rows[i].device == facts.partition.device
                )[:5],
                steps=facts.steps_with_most("communication"),
            ),
        ),
        time_ns=time,
        saving_ns=time,
        assumption="all of it runs beside computation",
    )
