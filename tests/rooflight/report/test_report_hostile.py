"""A report of hostile names and figures is still one, and what came from outside is text."""

from __future__ import annotations

import pytest

from rooflight.cli.table import table
from rooflight.protocol import Ceiling, Evidence, Flag, Parts
from rooflight.report.html import report
from rooflight.report.markup import Html, data, join, script, style, tag
from tests.factories import a_document
from tests.rooflight.report.reading import EVIL, Page, a_finding, page


def test_names_from_outside_are_text_wherever_they_stand() -> None:
    doc = a_document(kernels=8, source=EVIL)
    rank = doc.ranks[0]
    for k in rank.kernels:
        k.name = k.short_name = k.op = k.module = k.input_dims = k.reason = k.cost_reason = k.origin = EVIL
        k.regime = EVIL
    rank.host = rank.regime_reason = rank.regime = rank.regime_confidence = EVIL
    rank.grade, rank.grade_reasons, rank.software = EVIL, [EVIL], {EVIL: EVIL}
    rank.flags, rank.invalid_events = [Flag(EVIL, 1, EVIL)], {EVIL: 3}
    rank.devices["0"].name = rank.roofs["0"].name = EVIL
    rank.roofs["0"].compute[EVIL] = rank.roofs["0"].compute["fp32"]
    rank.findings = [a_finding(code=EVIL, title=EVIL, assumption=EVIL, fix=EVIL, regime=EVIL,
                               evidence=[Evidence(EVIL)])]  # fmt: skip
    rank.regime = "input"
    source = report(doc)
    source.encode("utf-8")
    found = Page(source)
    assert not [given for tag, given in found.tags if tag == "img" or "onerror" in given]
    assert len(found.scripts) == 3, "the library, our own and the figure"
    assert "<img" not in source.replace("\\u003c", "")
    assert "\u202e" not in source
    assert "\x00" not in source
    assert "FillFunctor<int>" in found.words, "read as text, nothing of it is lost"
    assert "<" not in next(body for given, body in found.scripts if given.get("id") == "figure")


def test_a_regime_that_we_do_not_know_is_shown_as_it_came() -> None:
    doc = a_document()
    doc.ranks[0].regime = doc.ranks[0].kernels[0].regime = "quantum"
    assert "Bound by quantum (high confidence)." in page(doc).words
    assert "Bound by quantum (high confidence)." in table(doc)
    assert 'class="sw r-unknown"></i>quantum' in report(doc)


def test_figures_that_cannot_be_break_no_report() -> None:
    doc = a_document(kernels=3)
    rank = doc.ranks[0]
    rank.kernels[0].time_us, rank.kernels[1].time_us = 1e-320, 1e308
    rank.kernels[2].flops, rank.kernels[2].histogram = 2**63 - 1, [-1]
    rank.roofs["0"].memory = Ceiling(-1.0, 1e308)
    rank.steps[0].parts_us, rank.steps[1].parts_us = Parts(compute=1e308), Parts(compute=-5.0)
    rank.steps[2].step_time_us = rank.steps[2].attainable_us = 1e308
    rank.findings = [a_finding(1e308), a_finding(-1.0)]
    assert "Rooflight" in page(doc).words


def test_a_hostile_name_is_shortened() -> None:
    doc = a_document(kernels=1)
    doc.ranks[0].kernels[0].name = doc.ranks[0].kernels[0].short_name = "x" * 65_536
    assert "x" * 601 not in report(doc)


def test_markup_is_made_only_of_tags() -> None:
    assert tag("p", "a < b & c", cls='x"y', data_n=1.5, title=None) == (
        '<p class="x&quot;y" data-n="1.5">a &lt; b &amp; c</p>'
    )
    assert tag("p", tag("b", "x"), Html("<i></i>")) == "<p><b>x</b><i></i></p>"
    assert join(["<", tag("meta", charset="utf-8")]) == '&lt;<meta charset="utf-8">'
    assert tag("p", "a\u202eb\x1b") == "<p>a\\u202eb\\x1b</p>"
    assert tag("p", "3\u00a0ms") == "<p>3\u00a0ms</p>", "the space before a unit stays"


def test_data_cannot_end_its_block_and_is_strict() -> None:
    assert data({"a": "</script><!--"}, "x") == (
        '<script type="application/json" id="x">{"a":"\\u003c/script>\\u003c!--"}</script>'
    )
    with pytest.raises(ValueError, match="JSON compliant"):
        data(float("nan"), "x")


@pytest.mark.parametrize("source", ["a</SCRIPT>", "a<!--b"])
def test_a_script_that_would_end_early_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="script"):
        script(source)


def test_a_style_sheet_that_would_end_early_is_refused() -> None:
    with pytest.raises(ValueError, match="style"):
        style("a</style>")
