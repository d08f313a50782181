"""The collectives of one rank, in the order of their start (DEFINITIONS §8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rooflight.kernels import KernelName
from rooflight.trace.builder import Interner
from rooflight.trace.tables import I64, Mask
from rooflight.trace.timeline import Timeline

#: Collectives that no rank leaves before the last one has arrived: their ends tell the clocks apart.
_ALL_RANK = ("allreduce", "allgather", "reduce_scatter", "reducescatter", "all_to_all", "alltoall", "barrier")
#: Messages between two ranks, which a process group numbers apart from its collectives.
_MESSAGES = ("send", "recv")


@dataclass(frozen=True, slots=True)
class Calls:
    """The communication kernels of a rank, row-aligned; ``start`` and ``end`` in ns on its own clock.

    ``group`` and ``kind`` index ``groups`` and ``kinds``: the process group with its ranks (stream and
    size where no group is named), and what it does.  ``seq`` is the number in the group, ``size`` how
    many ranks that has; -1 when it was not recorded.
    """

    groups: tuple[str, ...]
    kinds: tuple[str, ...]
    group: I64
    kind: I64
    seq: I64
    size: I64
    start: I64
    end: I64


def collective_calls(timeline: Timeline, names: Mapping[int, KernelName], is_comm: Mask) -> Calls:
    """The communication kernels of a recording; ``names`` by index of the string table."""
    gpu, rows = timeline.gpu, call_rows(timeline, is_comm)
    groups: Interner[str] = Interner()
    kinds: Interner[str] = Interner()
    told = [_told(timeline, names, row) for row in rows.tolist()]
    return Calls(
        group=np.array([groups[group] for group, *_ in told], np.int64),
        kind=np.array([kinds[kind] for _, kind, *_ in told], np.int64),
        seq=np.array([seq for *_, seq, _ in told], np.int64),
        size=np.array([size for *_, size in told], np.int64),
        start=gpu.start[rows],
        end=gpu.end[rows],
        groups=tuple(groups),
        kinds=tuple(kinds),
    )


def call_rows(timeline: Timeline, is_comm: Mask) -> I64:
    """The rows of ``timeline.gpu`` that the calls are, in their order."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    rows = rows[is_comm[rows]]
    found: I64 = rows[np.lexsort((gpu.end[rows], gpu.start[rows]))]
    return found


def is_all_rank(kind: str) -> bool:
    """Whether every rank waits for every other.

    A send/receive kernel without args may be half of an all-to-all or a single message.
    """
    return _plain(kind).startswith(_ALL_RANK)


def is_message(kind: str) -> bool:
    """Whether it is a message from one rank to another."""
    return _plain(kind).startswith(_MESSAGES)


def _plain(kind: str) -> str:
    return kind.lower().lstrip("_").replace("-", "_")


def _told(timeline: Timeline, names: Mapping[int, KernelName], row: int) -> tuple[str, str, int, int]:
    """Group, kind, number and group size of a call, -1 where it has none."""
    gpu = timeline.gpu
    args = timeline.comms[gpu.comm[row]] if gpu.comm[row] >= 0 else {}
    name = names[int(gpu.name[row])]
    kind = str(args.get("Collective name") or name.collective or name.short_name)
    return _group(timeline, args, row), kind, _count(args.get("Seq")), _count(args.get("Group size"))


def _count(value: object) -> int:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return value if known else -1  # type: ignore[return-value]


def _group(timeline: Timeline, args: Mapping[str, object], row: int) -> str:
    name = args.get("Process Group Name")
    if name is None:
        stream = timeline.stream_keys[timeline.gpu.stream[row]][3]
        return f"stream {stream}, {args.get('Group size', 'unknown')} ranks"
    ranks = args.get("Process Group Ranks")
    return f"{name} {ranks}" if ranks else str(name)
