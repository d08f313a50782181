"""docs/findings.md says what the rules say.  When it does not: scripts/finding_docs.py > docs/findings.md"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rooflight.findings import Rule, all_rules
from tests.shared import CHECKOUT
from tests.test_docs import sections

PAGE = (CHECKOUT / "docs" / "findings.md").read_text()


def test_the_page_is_what_the_rules_make() -> None:
    script = CHECKOUT / "scripts" / "finding_docs.py"
    made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert made.stdout == PAGE


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.code)
def test_each_rule_has_its_section_with_all_it_says(rule: Rule[Any]) -> None:
    words = " ".join(sections(PAGE)[rule.code].split())
    for said in (rule.title, rule.sees, rule.why, rule.fix, rule.false_alarms):
        assert " ".join(said.split()) in words
    assert (f"Regime: `{rule.regime}`" in words) == (rule.regime is not None)
