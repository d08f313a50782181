"""docs/costs.md and docs/costs/ say what the formulas say.  When they do not: scripts/cost_docs.py"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rooflight.cost import FAMILIES, registry
from rooflight.cost.explain import NOT_COUNTED, SOURCE, paragraph
from rooflight.cost.reasons import REASONS
from tests.shared import CHECKOUT

DOCS = CHECKOUT / "docs"
INDEX = (DOCS / "costs.md").read_text()


def written(folder: Path) -> dict[str, str]:
    pages = [folder / "costs.md", *(folder / "costs").glob("*.md")]
    return {str(page.relative_to(folder)): page.read_text() for page in pages}


def test_the_pages_are_what_the_registry_makes(tmp_path: Path) -> None:
    (tmp_path / "costs").mkdir()
    (tmp_path / "costs" / "gone.md").write_text("a family that is no more")
    subprocess.run([sys.executable, str(CHECKOUT / "scripts" / "cost_docs.py"), str(tmp_path)], check=True)
    assert written(tmp_path) == written(DOCS)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_page_and_says_what_it_leaves_out_and_whose_rule_it_is(family: str) -> None:
    page = (DOCS / "costs" / f"{family}.md").read_text()
    assert f"(costs/{family}.md)" in INDEX
    (model, *_) = [m for m in registry.models() if m.formula.__module__.endswith(f".{family}")]
    for head in (NOT_COUNTED, SOURCE):
        assert len(paragraph(model, head)) > len("a rule")
        assert f"\n{head} " in page


@pytest.mark.parametrize("family", FAMILIES)
def test_each_op_is_named_on_the_page_of_its_family(family: str) -> None:
    page = (DOCS / "costs" / f"{family}.md").read_text()
    own = [m for m in registry.models() if m.formula.__module__.endswith(f".{family}")]
    assert [n for m in own for n in m.names if f"`{n}`" not in page] == []


def test_each_reason_is_explained() -> None:
    sources = "".join(p.read_text() for p in (CHECKOUT / "rooflight" / "cost").glob("*.py"))
    reasons = set(re.findall(r'Unknown\("(\w+)"\)', sources))
    assert len(reasons) > 10
    assert reasons <= set(REASONS)
    assert [r for r in REASONS if f"\n| `{r}` |" not in INDEX] == []
