"""Findings as the protocol's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rooflight.attribution.intervals import EMPTY, Set, difference, measure
from rooflight.findings import Facts, Found, Rule, Waits, find, find_in_run, run_codes, spoken_of
from rooflight.protocol import Evidence, Finding
from rooflight.results.result import RankResult
from rooflight.units import NS_PER_US, us, us_or_none


@dataclass(frozen=True, slots=True)
class Advice:
    """The findings of a recording; ``when`` are the instants that those with a saving speak of, ``total_us``
    their time as the mean per counted step; ``None`` where none has a saving."""

    rows: list[Finding]
    total_us: float | None
    when: Set = field(default_factory=lambda: EMPTY, compare=False)


def advice(facts: Facts, place: Sequence[int], *, withheld: bool) -> Advice:
    """The findings of a recording; savings are means per counted step.  ``place`` is the row of the kernel
    table of each group; ``withheld`` tells that the recording allows no verdicts."""
    found = find(facts, withheld=withheld)
    known = any(one.saving_ns is not None for _, one in found)
    when = spoken_of(one for _, one in found)
    rows = [_row(rule, one, facts.counted, place) for rule, one in found]
    return Advice(rows, us_or_none(measure(when) / facts.counted) if known else None, when)


def add_from_run(result: RankResult, waits: Waits | None) -> None:
    """Put what the comparison of the ranks tells among the findings of a rank, and its instants into the
    total, in place of what an earlier comparison told; ``None`` where it tells nothing."""
    rank, alone = result.rank, result.advised
    found = [] if waits is None else find_in_run(waits)
    new = [_row(rule, one, waits.counted, range(len(rank.kernels))) for rule, one in found] if waits else []
    rank.findings_total_us = alone.total_us
    if waits and any(one.saving_ns is not None for _, one in found):
        # All that a rule of a run speaks of is exposed communication.
        more = measure(difference(spoken_of(one for _, one in found), alone.communication))
        rank.findings_total_us = us(more / waits.counted + NS_PER_US * (alone.total_us or 0.0))
    kept = [f for f in rank.findings if f.code not in run_codes()]
    rank.findings = sorted([*kept, *new], key=lambda f: -1.0 if f.saving_us is None else -f.saving_us - 1)


def _row(rule: Rule[Any], found: Found, counted: int, place: Sequence[int]) -> Finding:
    saving = None if found.saving_ns is None else found.saving_ns / counted
    return Finding(
        code=rule.code,
        title=rule.title,
        saving_us=us_or_none(saving),
        assumption=found.assumption,
        evidence=[Evidence(s.text, [place[g] for g in s.groups], list(s.steps)) for s in found.seen],
        fix=rule.fix,
        regime=rule.regime,
    )
