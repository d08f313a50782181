"""Many collectives that each carry little."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.attribution.intervals import measure
from rooflight.findings.facts import Facts
from rooflight.findings.messages import SMALL, communication_rows, message_sizes
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule

_MANY = 8


@rule(
    "small-collectives",
    "Many small messages between ranks",
    regime="communication",
    why="Below about a megabyte a collective takes the time of its start and of its hops, not of its bytes.",
    fix="Send them together: larger buckets in DDP (bucket_cap_mb), larger units in FSDP, coalesced "
    "collectives (torch.distributed._coalescing_manager, all_reduce of one flattened tensor); metrics "
    "once in many steps.",
    false_alarms="Their time may be waiting for a slower rank, which larger messages leave as it is.",
)
def small_collectives(facts: Facts) -> Iterator[Found]:
    """Eight collectives or more per step with messages under 1 MiB: the time in which only they run."""
    rows = communication_rows(facts)
    size = message_sizes(facts, rows)
    small = rows[(size > 0) & (size < SMALL)]
    if small.size < _MANY * facts.counted:
        return
    when = facts.exposed(small, "communication")
    time = measure(when)
    largest = int(size[(size > 0) & (size < SMALL)].max())
    text = (
        f"{facts.times(small.size)}, the largest of {largest:,} bytes; {facts.each(time)}, "
        f"{facts.share(time)}, only they run"
    )
    yield Found.over(
        when,
        (Seen(text, groups=facts.most_of(small)),),
        float(time),
        "sent together they hide behind computation",
    )
