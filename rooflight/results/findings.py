"""Findings as the protocol's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rooflight.findings import Facts, Found, Rule, Waits, find, find_in_run, run_codes, together_ns
from rooflight.protocol import Evidence, Finding, Rank
from rooflight.units import us_or_none


@dataclass(frozen=True, slots=True)
class Advice:
    """The findings of a recording; ``total_us`` is the time that those with a saving speak of, each instant
    once, as the mean per counted step; ``None`` where none has a saving."""

    rows: list[Finding]
    total_us: float | None


def advice(facts: Facts, place: Sequence[int], *, withheld: bool) -> Advice:
    """The findings of a recording; savings are means per counted step.  ``place`` is the row of the kernel
    table of each group; ``withheld`` tells that the recording allows no verdicts."""
    found = find(facts, withheld=withheld)
    known = any(one.saving_ns is not None for _, one in found)
    total = together_ns(one for _, one in found) / facts.counted if known else None
    rows = [_row(rule, one, facts.counted, place) for rule, one in found]
    return Advice(rows, us_or_none(total))


def add_from_run(rank: Rank, waits: Waits | None) -> None:
    """Put what the comparison of the ranks tells among the findings of a rank, in place of what an earlier
    comparison told; ``None`` where it tells nothing."""
    kept = [f for f in rank.findings if f.code not in run_codes()]
    found = [] if waits is None else find_in_run(waits)
    new = [_row(rule, one, waits.counted, range(len(rank.kernels))) for rule, one in found] if waits else []
    # What a rank waits for others is exposed communication, of which the total holds every instant where that
    # is a finding.
    waited = [f.saving_us for f in new if f.saving_us is not None]
    if waited:
        rank.findings_total_us = max(*waited, rank.findings_total_us or 0.0)
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
