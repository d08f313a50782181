"""The report in one file: only its own scripts run, nothing is loaded, and it stays small."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re

import pytest

from rooflight.errors import MissingExtra
from rooflight.report import library
from rooflight.report.html import report
from rooflight.report.markup import script
from tests.factories import a_document, a_kernel
from tests.rooflight.report.reading import Page, a_finding, page
from tests.shared import CHECKOUT


def test_only_its_own_scripts_may_run_and_nothing_be_loaded() -> None:
    found = page(a_document())
    policy = next(g["content"] for t, g in found.tags if g.get("http-equiv") == "Content-Security-Policy")
    ran = [body for given, body in found.scripts if "type" not in given]
    digests = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in ran]
    assert len(ran) == 2
    allowed = " ".join(f"'sha256-{d}'" for d in digests)
    assert f"script-src {allowed};" in policy
    assert policy.startswith("default-src 'none'")
    loads = [(t, g) for t, g in found.tags if {"src", "action", "srcset"} & g.keys() or t in ("link", "base")]
    assert loads == []
    assert all(g.get("href", "#").startswith("#") for _, g in found.tags)


def test_the_library_is_that_of_the_installed_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    text = library.plotly_js()
    assert "plotly.js v" in text[:200]
    assert script(text), "it can stand inside a page"
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"rooflight\[notebook\]"):
        library.plotly_js()


def test_colours_are_those_of_the_pages() -> None:
    ours = CHECKOUT / "rooflight/report/assets/tokens.css"
    assert ours.read_bytes() == (CHECKOUT / "web/static/css/tokens.css").read_bytes()


def test_every_class_of_the_page_has_its_rule() -> None:
    doc = a_document(kernels=230, steps=30)
    doc.ranks[0].findings = [a_finding()] * 4
    doc.ranks[0].kernels[0].above_peak = True
    source, rules = report(doc), (CHECKOUT / "rooflight/report/assets/report.css").read_text()
    used = {c for _, given in Page(source).tags for c in given.get("class", "").split()}
    named = set(re.findall(r"\.([a-z][\w-]*)", rules))
    assert used - named == set()


def test_the_figure_is_that_of_the_figures_package() -> None:
    from rooflight.figures.roofline import roofline

    doc = a_document()
    assert page(doc).figure() == json.loads(json.dumps(roofline(doc)))


def test_many_groups_stay_a_small_file() -> None:
    doc = a_document(kernels=1, steps=500)
    rng = random.Random(1)
    doc.ranks[0].kernels = [a_kernel(i, rng) for i in range(20_000)]
    for k in doc.ranks[0].kernels:
        k.name = k.short_name = k.name + "x" * 2_000
    # The library has 4.8 MB of the 8 that a report may have.
    assert len(report(doc).encode()) < 3_000_000
