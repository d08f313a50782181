"""Communication that no computation hides."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import of_part
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
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
    groups = tuple(
        i
        for i, v in enumerate(facts.verdicts)
        if v.regime == "communication" and facts.groups.rows[i].device == facts.partition.device
    )[:5]
    yield of_part(
        facts, "communication", "only communication runs", "all of it runs beside computation", groups
    )
