#!/usr/bin/env python3
"""Writes docs/findings.md from the registry of rules: ``scripts/finding_docs.py > docs/findings.md``."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rooflight.findings import Rule, all_rules
from rooflight.findings.registry import LEAST

HEAD = f"""# Findings: what to do about it

Made by `scripts/finding_docs.py` from the rules in `rooflight/findings/rules`.

A finding is advice with its evidence: what was seen in the recording, how to fix it, and a saving. The saving
is an upper bound from the recording itself, as the mean per counted step (without steps: of the whole
recording), and says what it assumes. It is never more than the time of what it speaks of, and one of less
than {100 * LEAST:g} % of the wall time is not listed. A dash is a saving that nothing tells. Savings of
several findings may speak of the same time and do not add up.

Where the recording allows no verdicts ([regimes](regimes.md)), only what is said of the recording itself
stays.

| code | what is said | regime |
|---|---|---|
"""


def row(rule: Rule[Any]) -> str:
    """A rule as a row of the table, with a link to its section."""
    return f"| [`{rule.code}`](#{rule.code}) | {rule.title} | {rule.regime or '–'} |"


def section(rule: Rule[Any]) -> str:
    """All that is known of one rule."""
    about = f"*{rule.title}.*" + (f" Regime: `{rule.regime}`." if rule.regime else "")
    words = [
        ("What it sees", rule.sees),
        ("Why it costs", rule.why),
        ("How to fix it", rule.fix),
        ("Known false alarms", rule.false_alarms),
    ]
    return "\n\n".join([f"## {rule.code}", about, *(_wrapped(f"**{head}**: {text}") for head, text in words)])


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False)


def page() -> str:
    """The page: the table, and a section for each rule."""
    rules = all_rules()
    return HEAD + "\n\n".join(["\n".join(map(row, rules)), *map(section, rules)])


if __name__ == "__main__":
    print(page())
