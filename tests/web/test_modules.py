"""The tests of the ES modules, which live beside them and run in node."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.shared import CHECKOUT

JS = CHECKOUT / "web" / "static" / "js"


@pytest.mark.node
def test_modules() -> None:
    tests = sorted(JS.glob("*.test.js"))
    assert len(tests) >= 5
    done = subprocess.run(["node", "--test", *map(str, tests)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"pass (\d+)", done.stdout)
    assert passed
    assert int(passed[1]) >= 25


def test_every_import_is_beside_its_importer() -> None:
    for module in JS.glob("*.js"):
        for name in re.findall(r"from '\./([^']+)'", module.read_text("utf-8")):
            assert (JS / name).is_file(), f"{module.name} imports {name}"


def test_regime_colours_are_written_once() -> None:
    colours = ["#0072b2", "#e69f00", "#cc79a7", "#009e73", "#56b4e9", "#8c6d31", "#6a5acd"]
    for file in [
        *JS.glob("*.js"),
        JS.parent / "css" / "app.css",
        *(CHECKOUT / "web" / "templates").glob("*.html"),
    ]:
        text = file.read_text("utf-8").lower()
        assert not [c for c in colours if c in text], file.name


def test_pages_need_no_inline_script_and_no_other_host() -> None:
    for template in (CHECKOUT / "web" / "templates").glob("*.html"):
        text = template.read_text("utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), template.name
        assert not re.search(r"\son\w+=", text), template.name
        assert "|safe" not in text.replace(" ", ""), template.name
        assert not re.search(r"(src|href)=\"https?:", text), template.name
