"""Kernel groups of one run as they are compared: per step and rank, whatever number of either there was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from rooflight.comparison.recordings import Recording, ns, part_of
from rooflight.protocol import Kernel


class Key(NamedTuple):
    """What makes two rows the same group; the device is not in it: runs are compared device by device."""

    kind: str
    name: str
    op: str | None
    module: str | None
    dims: str | None
    types: str | None

    @property
    def text(self) -> tuple[str, ...]:
        """In an order that two runs share."""
        return tuple(part or "" for part in self)


@dataclass(frozen=True, slots=True)
class Group:
    """One group of one run, means over steps and ranks.

    ``ns`` is its own time per step, ``by_part`` the same by part, ``calls`` the launches that start in a
    step; ``launch_ns`` is the mean duration of a launch, alone or not, over the recording; ``flops`` and
    ``bytes`` are per launch, ``None`` where unknown.  ``row`` is that of the rank in which it has most time:
    regime and roof are its.
    """

    key: Key
    row: Kernel
    ns: Fraction
    by_part: dict[str, Fraction]
    calls: Fraction
    launch_ns: Fraction | None
    flops: Fraction | None
    bytes: Fraction | None

    @property
    def call_ns(self) -> Fraction | None:
        """Its own time per launch."""
        return self.ns / self.calls if self.calls else None


def key_of(row: Kernel) -> Key:
    return Key(row.kind, row.name, row.op, row.module, row.input_dims, row.input_types)


def groups_of(recordings: Sequence[Recording], *, by_step: bool) -> list[Group] | None:
    """The groups by what they are; ``None`` where the document does not tell the time that each has alone."""
    members: dict[Key, list[_Member]] = defaultdict(list)
    for r in recordings:
        weight = Fraction(1, len(recordings) * (len(r.steps) if by_step else 1))
        for row in r.rows:
            own = row.steps_exclusive_us if by_step else row.exclusive_us
            calls = row.steps_count if by_step else row.count
            if own is None or calls is None:
                return None
            members[key_of(row)].append(_Member(row, ns(own) * weight, calls * weight))
    return [_group(key, members[key]) for key in sorted(members, key=lambda k: k.text)]


class _Member(NamedTuple):
    """The group's row in one rank, with its share of the mean."""

    row: Kernel
    ns: Fraction
    calls: Fraction


def _group(key: Key, members: Sequence[_Member]) -> Group:
    by_part: dict[str, Fraction] = defaultdict(Fraction)
    for m in members:
        by_part[part_of(m.row)] += m.ns
    rows = [m.row for m in members]
    return Group(
        key=key,
        row=max(members, key=lambda m: m.ns).row,
        ns=sum(by_part.values(), Fraction()),
        by_part=dict(by_part),
        calls=sum((m.calls for m in members), Fraction()),
        launch_ns=_per_call(rows, [ns(r.time_us) for r in rows]),
        flops=_per_call(rows, [r.flops for r in rows]),
        bytes=_per_call(rows, [r.bytes for r in rows]),
    )


def _per_call(rows: Sequence[Kernel], amounts: Sequence[int | None]) -> Fraction | None:
    count, known = sum(r.count for r in rows), [a for a in amounts if a is not None]
    return Fraction(sum(known), count) if count and len(known) == len(rows) else None
