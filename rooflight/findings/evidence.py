"""The shapes that most findings have: a part of the idle time, some groups, some kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflight.attribution.intervals import Set, measure
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.trace.tables import I64


def of_part(facts: Facts, part: str, doing: str, assumption: str, groups: tuple[int, ...] = ()) -> Found:
    """All of a part of the device's time, which ``doing`` names; ``groups`` are those that fill it."""
    when = facts.idle(part)
    text = f"{amount(facts, when)}, {doing}"
    seen = (Seen(text, groups, facts.steps_with_most(part)),)
    return Found.over(when, seen, float(measure(when)), assumption)


def of_groups(
    facts: Facts, groups: Sequence[int], saving_ns: float | None, assumption: str
) -> Iterator[Found]:
    """The kernel time of these groups; nothing where there are none."""
    if groups:
        when = facts.instants_of(groups)
        yield Found.over(when, (Seen(amount(facts, when), groups=facts.most(groups)),), saving_ns, assumption)


def excess_of(facts: Facts, groups: Sequence[int]) -> Iterator[Found]:
    """The kernel time of these groups, of which goes what lies above their roof."""
    saving_ns = sum(facts.excess_ns(i) for i in groups)
    return of_groups(facts, groups, saving_ns, "they reach their practical roof")


def of_rows(facts: Facts, rows: I64, saving_ns: float | None, assumption: str, text: str = "") -> Found:
    """The kernel time of these kernels; ``text`` stands before its amount."""
    when = facts.instants(rows)
    return Found.over(
        when, (Seen(f"{text}{amount(facts, when)}", groups=facts.most_of(rows)),), saving_ns, assumption
    )


def amount(facts: Facts, when: Set) -> str:
    """How much of the counted time some instants are, as text."""
    ns = measure(when)
    return f"{facts.each(ns)}, {facts.share(ns)}"
