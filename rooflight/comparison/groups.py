"""Kernel groups of one run as they are compared: per step and rank, whatever number of either there was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct

from rooflight.comparison.exact import total
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
        return self.kind, self.name, self.op or "", self.module or "", self.dims or "", self.types or ""


class Group(Struct, frozen=True, gc=False):
    """One group of one run, means over steps and ranks.

    ``ns`` is its own time per step, ``by_part`` the same by part, ``calls`` the launches that start in a
    step.  ``rows`` are those of the ranks, ``row`` the one in which it has most time: regime and
    roof are its.
    """

    key: Key
    row: Kernel
    rows: tuple[Kernel, ...]
    ns: Fraction
    by_part: dict[str, Fraction]
    calls: Fraction

    @property
    def call_ns(self) -> Fraction | None:
        """Its own time per launch."""
        return self.ns / self.calls if self.calls else None

    @property
    def launch_ns(self) -> Fraction | None:
        """The mean duration of a launch, alone or not, over the recording."""
        return _per_call(self.rows, [ns(r.time_us) for r in self.rows])

    @property
    def flops(self) -> Fraction | None:
        """Per launch; ``None`` where unknown."""
        return _per_call(self.rows, [r.flops for r in self.rows])

    @property
    def bytes(self) -> Fraction | None:
        """Per launch; ``None`` where unknown."""
        return _per_call(self.rows, [r.bytes for r in self.rows])


def key_of(row: Kernel) -> Key:
    return Key(row.kind, row.name, row.op, row.module, row.input_dims, row.input_types)


def groups_of(recordings: Sequence[Recording], *, by_step: bool) -> list[Group] | None:
    """The groups by what they are; ``None`` where the document does not tell the time that each has alone."""
    members: dict[Key, list[_Member]] = defaultdict(list)
    for r in recordings:
        share = len(recordings) * (len(r.steps) if by_step else 1)
        for row in r.rows:
            own = row.steps_exclusive_us if by_step else row.exclusive_us
            calls = row.steps_count if by_step else row.count
            if own is None or calls is None:
                return None
            members[key_of(row)].append(_Member(row, Fraction(ns(own), share), Fraction(calls, share)))
    return [_group(key, members[key]) for key in sorted(members, key=lambda k: k.text)]


class _Member(NamedTuple):
    """The group's row in one rank, with its share of the mean."""

    row: Kernel
    ns: Fraction
    calls: Fraction


def _group(key: Key, members: Sequence[_Member]) -> Group:
    parts: dict[str, list[Fraction]] = defaultdict(list)
    for m in members:
        parts[part_of(m.row)].append(m.ns)
    by_part = {part: total(times) for part, times in parts.items()}
    return Group(
        key=key,
        row=max(members, key=lambda m: m.ns).row,
        rows=tuple(m.row for m in members),
        ns=total(by_part.values()),
        by_part=by_part,
        calls=total([m.calls for m in members]),
    )


def _per_call(rows: Sequence[Kernel], amounts: Sequence[int | None]) -> Fraction | None:
    count, known = sum(r.count for r in rows), [a for a in amounts if a is not None]
    return Fraction(sum(known), count) if count and len(known) == len(rows) else None
