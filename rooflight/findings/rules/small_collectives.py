"""Many collectives that each carry little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.attribution.intervals import measure
from rooflight.cost.model import Cost
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import I64, GpuKind

_MANY = 8
_SMALL = 1 << 20


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
    gpu = facts.timeline.gpu
    rows = facts.rows(gpu.kind == np.int8(GpuKind.KERNEL))
    rows = rows[facts.begins(rows)]
    size = _messages(facts, rows)
    small = rows[(size > 0) & (size < _SMALL)]
    if small.size < _MANY * facts.counted:
        return
    when = facts.exposed(small, "communication")
    time = measure(when)
    largest = int(size[(size > 0) & (size < _SMALL)].max())
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


def _messages(facts: Facts, rows: I64) -> I64:
    """Bytes of the message of each GPU event, -1 where it is none or unknown."""
    communicates = np.array([*(v.regime == "communication" for v in facts.verdicts), False], bool)
    size = np.full(rows.size, -1, np.int64)
    mine = np.flatnonzero(communicates[facts.groups.of_event[rows]])
    place, of = np.unique(facts.costs.index[rows[mine]], return_inverse=True)
    size[mine] = np.array([_message(facts.costs.costs[i]) for i in place.tolist()], np.int64)[of]
    return size


def _message(cost: Cost) -> int:
    """The larger of what goes in and what comes out."""
    known = [size for size in (cost.bytes_read, cost.bytes_written) if size is not None]
    return min(max(known), 1 << 62) if len(known) == 2 else -1
