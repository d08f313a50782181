"""What all tests of the report share."""

from __future__ import annotations

import pytest

from rooflight.report import html as html_module


@pytest.fixture(autouse=True)
def short_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is 4.8 MB and the same in every report; one test reads it."""
    monkeypatch.setattr(html_module, "plotly_js", lambda: "/* plotly */")
