"""docs/verdicts.md is what the analysis says."""

from __future__ import annotations

import pytest

from scripts import verdict_docs
from tests.shared import traces_dir


@pytest.mark.traces
def test_the_table_is_current() -> None:
    """If not: ``.venv/bin/python scripts/verdict_docs.py TRACES``, and look at what changed."""
    text = verdict_docs.PAGE.read_text()
    assert verdict_docs.page(text, traces_dir()) == text
