"""Findings as the protocol's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rooflight.findings import Facts, Found, Rule, Waits, find, find_in_run, run_codes
from rooflight.protocol import Evidence, Finding, Rank
from rooflight.units import us_or_none


def finding_rows(facts: Facts, place: Sequence[int], *, withheld: bool) -> list[Finding]:
    """The findings of a recording; savings are means per counted step.  ``place`` is the row of the kernel
    table of each group; ``withheld`` tells that the recording allows no verdicts."""
    return [_row(rule, found, facts.counted, place) for rule, found in find(facts, withheld=withheld)]


def add_from_run(rank: Rank, waits: Waits | None) -> None:
    """Put what the comparison of the ranks tells among the findings of a rank, in place of what an earlier
    comparison told; ``None`` where it tells nothing."""
    kept = [f for f in rank.findings if f.code not in run_codes()]
    found = [] if waits is None else find_in_run(waits)
    new = [_row(rule, one, waits.counted, range(len(rank.kernels))) for rule, one in found] if waits else []
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
