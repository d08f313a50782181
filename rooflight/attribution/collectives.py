"""The collectives of one rank, in the order of their start (DEFINITIONS §8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rooflight.kernels import KernelName
from rooflight.trace.tables import Mask
from rooflight.trace.timeline import Timeline

#: Collectives that no rank leaves before the last one has arrived: their ends tell the clocks apart.
_ALL_RANK = ("allreduce", "allgather", "reduce_scatter", "reducescatter", "all_to_all", "alltoall", "barrier")


@dataclass(frozen=True, slots=True)
class Call:
    """A communication kernel: ``start`` and ``end`` in ns on the rank's own wall clock.

    ``group`` is the process group with its ranks, or stream and size where no group is named; ``seq``
    is its number in the group, ``None`` when it was not recorded.
    """

    group: str
    seq: int | None
    kind: str
    all_rank: bool
    start: int
    end: int


def collective_calls(timeline: Timeline, names: Mapping[int, KernelName], is_comm: Mask) -> list[Call]:
    """The communication kernels of a recording as calls; ``names`` by index of the string table."""
    gpu = timeline.gpu
    rows = timeline.valid_gpu
    rows = rows[is_comm[rows]]
    rows = rows[np.lexsort((gpu.end[rows], gpu.start[rows]))]
    return [_call(timeline, names, int(row)) for row in rows]


def _call(timeline: Timeline, names: Mapping[int, KernelName], row: int) -> Call:
    gpu, base = timeline.gpu, timeline.meta.base_ns
    args = timeline.comms[gpu.comm[row]] if gpu.comm[row] >= 0 else {}
    name = names[int(gpu.name[row])]
    kind = str(args.get("Collective name") or name.collective or name.short_name)
    seq = args.get("Seq")
    plain = kind.lower().lstrip("_").replace("-", "_")
    return Call(
        group=_group(timeline, args, row),
        seq=seq if isinstance(seq, int) and not isinstance(seq, bool) else None,
        kind=kind,
        # A send/receive kernel without args may be half of an all-to-all or a single message.
        all_rank=plain.startswith(_ALL_RANK),
        start=base + int(gpu.start[row]),
        end=base + int(gpu.end[row]),
    )


def _group(timeline: Timeline, args: Mapping[str, object], row: int) -> str:
    name = args.get("Process Group Name")
    if name is None:
        stream = timeline.stream_keys[timeline.gpu.stream[row]][3]
        return f"stream {stream}, {args.get('Group size', 'unknown')} ranks"
    ranks = args.get("Process Group Ranks")
    return f"{name} {ranks}" if ranks else str(name)
