"""Findings as the protocol's rows."""

from __future__ import annotations

from collections.abc import Sequence

from rooflight.findings import Facts, Found, Rule, find
from rooflight.protocol import Evidence, Finding
from rooflight.units import us_or_none


def finding_rows(facts: Facts, place: Sequence[int], *, withheld: bool) -> list[Finding]:
    """The findings of a recording; savings are means per counted step.  ``place`` is the row of the kernel
    table of each group; ``withheld`` tells that the recording allows no verdicts."""
    return [_row(facts, place, rule, found) for rule, found in find(facts, withheld=withheld)]


def _row(facts: Facts, place: Sequence[int], rule: Rule, found: Found) -> Finding:
    saving = None if found.saving_ns is None else found.saving_ns / facts.counted
    return Finding(
        code=rule.code,
        title=rule.title,
        saving_us=us_or_none(saving),
        assumption=found.assumption,
        evidence=[Evidence(s.text, [place[g] for g in s.groups], list(s.steps)) for s in found.seen],
        fix=rule.fix,
        regime=rule.regime,
    )
