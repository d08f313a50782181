"""Communication that no computation hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import Clipper, Set, difference, measure, union
from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.messages import SMALL, communication_groups, communication_rows, message_sizes
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import LEAST, rule
from rooflight.findings.residency import room_beside, taken_sms
from rooflight.trace.tables import I64, among


@rule(
    "exposed-communication",
    "Communication that no computation hides",
    regime="communication",
    why="While only collectives run, the units for arithmetic stand idle.",
    fix="Let gradients travel while the backward pass still runs (DDP's buckets, FSDP's prefetch); choose "
    "bucket sizes that the link fills; give the communication stream priority, and where its blocks find no "
    "room beside a kernel's, fewer channels (NCCL_MAX_NCHANNELS) or fewer persistent blocks; send less (bf16 "
    "gradients, fewer ranks per shard).",
    false_alarms="What looks like communication may be waiting for a slower rank: with all ranks in one run, "
    "wait and transfer are told apart.  Kernels that need the result of the collective cannot run beside it: "
    "which those are no recording tells.",
)
def exposed_communication(facts: Facts) -> Iterator[Found]:
    """Time in which communication kernels run and no other kernel does.  Of each step at most so much goes as
    kernels run in it without communication beside them: nothing else could hide it."""
    when = facts.idle("communication")
    room = _room(facts)
    groups = communication_groups(facts)
    seen = (
        Seen(
            f"{amount(facts, when)}, only communication runs",
            groups[:5],
            facts.steps_with_most("communication"),
        ),
        Seen(_room_text(facts, room)),
        *_messages(facts),
        *_residency(facts, groups),
    )
    hidden = float(min(measure(when), room.hides_ns))
    if hidden >= LEAST * facts.wall_ns:
        yield Found.over(when, seen, hidden, "kernels of the same step that do not need its result hide it")
    elif measure(when) >= LEAST * facts.wall_ns > 0:
        yield Found.over(when, seen, None, "no kernel is left to run beside it: only sending less helps")


@dataclass(frozen=True, slots=True)
class _Room:
    """Ns of kernels without communication beside them, how much of it runs after the first exposed instant of
    its step, and how much communication the whole could hide, step by step."""

    free_ns: int
    after_ns: int
    hides_ns: int


def _room(facts: Facts) -> _Room:
    free, exposed = _free(facts), facts.idle("communication")
    start, end = _bounds(facts)
    inside = Clipper(free).within(start, end)
    shown = Clipper(exposed).within(start, end)
    after = Clipper(free).within(np.minimum(_first(exposed, start), end), end)
    after = np.where(shown > 0, after, 0)
    return _Room(int(inside.sum()), int(after.sum()), int(np.minimum(inside, shown).sum()))


def _free(facts: Facts) -> Set:
    """The instants of kernels beside which nothing communicates."""
    gpu, kernels = facts.timeline.gpu, facts.partition.kernels
    rows = facts.rows(facts.groups.of_event >= 0)
    mine = np.array(communication_groups(facts), np.int64)
    calls = rows[among(facts.groups.of_event[rows], mine)]
    return difference(union(kernels.start, kernels.end), union(gpu.start[calls], gpu.end[calls]))


def _bounds(facts: Facts) -> tuple[I64, I64]:
    both = np.array([(s.start, s.end) for s in facts.spans] or [facts.window], np.int64)
    return both[:, 0], both[:, 1]


def _first(s: Set, start: I64) -> I64:
    """The first instant of the set from each start on; far away where there is none."""
    at = np.searchsorted(s[:, 1], start, side="right")
    begins = np.append(s[:, 0], np.iinfo(np.int64).max)
    found: I64 = np.maximum(begins[at], start)
    return found


def _room_text(facts: Facts, room: _Room) -> str:
    return (
        f"kernels without communication beside them: {facts.each(room.free_ns)}, of which "
        f"{facts.each(room.after_ns)} after communication was first exposed"
    )


def _messages(facts: Facts) -> Iterator[Seen]:
    rows = communication_rows(facts)
    size = message_sizes(facts, rows)
    known = np.sort(size[size > 0])
    if known.size:
        median = int(known[(known.size - 1) // 2])
        kind = "less than fills a link" if median < SMALL else "enough for a link"
        yield Seen(f"the median message of {facts.times(known.size)} has {median:,} bytes: {kind}")


def _residency(facts: Facts, groups: tuple[int, ...]) -> Iterator[Seen]:
    """Of the group that communicates longest, and the one that computes longest."""
    if not groups:
        return
    longest = max(groups, key=lambda i: (facts.groups.rows[i].total_ns, -i))
    taken = taken_sms(facts, facts.groups.rows[longest])
    if taken is None:
        return
    text = f"its blocks are on {taken[0]} of {taken[1]} SMs at most, which leaves {taken[1] - taken[0]}"
    computes = facts.most((i for i, _, v in facts.kernels() if v.regime != "communication"), 1)
    room = (
        room_beside(facts, facts.groups.rows[computes[0]], facts.groups.rows[longest]) if computes else None
    )
    if room is not None:
        beside = f"{room.resident} block{'s' if room.resident > 1 else ''} of {facts.label(computes[0])}"
        fits = f"finds no room ({room.lacking})" if room.lacking else "finds room"
        text += f"; one of them {fits} on an SM with {beside}"
    yield Seen(text, groups=(longest, *(computes if room else ())))
