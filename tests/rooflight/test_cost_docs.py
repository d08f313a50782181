"""docs/costs.md says what the formulas say.  When it does not: scripts/cost_docs.py > docs/costs.md"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from rooflight.cost import FAMILIES, registry
from tests.shared import CHECKOUT

PAGE = (CHECKOUT / "docs" / "costs.md").read_text()


def test_the_page_is_what_the_registry_makes() -> None:
    made = subprocess.run(
        [sys.executable, str(CHECKOUT / "scripts" / "cost_docs.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == PAGE


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_heading(family: str) -> None:
    assert f"\n## {family.replace('_', ' ')}\n" in PAGE


def test_each_op_is_named() -> None:
    missing = [n for model in registry.models() for n in model.names if f"`{n}`" not in PAGE]
    assert missing == []


def test_each_reason_is_explained() -> None:
    sources = "".join(p.read_text() for p in (CHECKOUT / "rooflight" / "cost").glob("*.py"))
    reasons = set(re.findall(r'Unknown\("(\w+)"\)', sources))
    assert len(reasons) > 10
    assert [r for r in sorted(reasons) if f"`{r}`" not in PAGE] == []
