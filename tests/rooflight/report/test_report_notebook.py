"""What a notebook shows of an analysis."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from rooflight.analysis import Analysis
from rooflight.protocol import Document
from tests.factories import a_document
from tests.rooflight.report.reading import EVIL, Page, a_finding


def cell(document: Document) -> Page:
    return Page(Analysis(document, {})._repr_html_())


def test_the_verdict_the_bars_and_the_findings() -> None:
    """A tenth of 174.8 ms: 17.48."""
    document = a_document()
    document.ranks[0].findings = [a_finding()] * 7
    found = cell(document)
    assert "Bound by input (high confidence): 58.70 ms of 174.8 ms per step (34 %)" in found.words
    assert found.words.count("The device waits (17.48 ms, 10.0 %) Give it workers.") == 5
    assert "Not shown: 2 more findings." in found.words
    [image] = [given for name, given in found.tags if name == "img"]
    kind, _, packed = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    drawing = ElementTree.fromstring(base64.b64decode(packed))
    assert "58.7" in "".join(drawing.itertext())
    assert not {"script", "style", "link"} & {name for name, _ in found.tags}


def test_a_verdict_that_is_withheld_gives_its_reason() -> None:
    document = a_document()
    rank = document.ranks[0]
    rank.regime, rank.verdict_withheld = None, "most steps hold no GPU work"
    assert "No verdict: most steps hold no GPU work." in cell(document).words


@pytest.mark.parametrize("ranks", [0, 1])
def test_names_from_outside_stay_text(ranks: int) -> None:
    document = replace(a_document(source=EVIL), ranks=a_document().ranks[:ranks])
    for rank in document.ranks:
        rank.devices["0"].name = EVIL
        rank.findings = [a_finding(title=EVIL, fix=EVIL)]
    found = cell(document)
    images = [given for name, given in found.tags if name == "img"]
    assert all(given["src"].startswith("data:image/svg+xml") and "onerror" not in given for given in images)
    assert found.scripts == []
    assert len(images) == ranks
