"""What collectives carry, as findings look at it."""

from __future__ import annotations

import numpy as np

from rooflight.cost.model import Cost
from rooflight.findings.facts import Facts
from rooflight.trace.tables import I64, GpuKind

#: Under this a collective takes the time of its start and hops, not of its bytes.
SMALL = 1 << 20


def communication_groups(facts: Facts) -> tuple[int, ...]:
    """The kernel groups of this device that communicate."""
    return tuple(
        i
        for i, v in enumerate(facts.verdicts)
        if v.regime == "communication" and facts.groups.rows[i].device == facts.partition.device
    )


def communication_rows(facts: Facts) -> I64:
    """The communication kernels of this device that begin in the counted time."""
    gpu = facts.timeline.gpu
    rows = facts.rows(gpu.kind == np.int8(GpuKind.KERNEL))
    rows = rows[_communicates(facts)[facts.groups.of_event[rows]]]
    return rows[facts.begins(rows)]


def message_sizes(facts: Facts, rows: I64) -> I64:
    """Bytes of the message of each communication kernel, -1 where it is unknown."""
    place, of = np.unique(facts.costs.index[rows], return_inverse=True)
    return np.array([_message(facts.costs.costs[i]) for i in place.tolist()], np.int64)[of]


def _communicates(facts: Facts) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    # Index -1, of events in no group, is the last entry.
    return np.array([*(v.regime == "communication" for v in facts.verdicts), False], bool)


def _message(cost: Cost) -> int:
    """The larger of what goes in and what comes out."""
    known = [size for size in (cost.bytes_read, cost.bytes_written) if size is not None]
    return min(max(known), 1 << 62) if len(known) == 2 else -1
