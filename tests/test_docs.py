"""The documentation names everything there is, and nothing that there is not."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import msgspec
import pytest

import rooflight
from rooflight import calibration, collectives, protocol
from rooflight.cli.main import COMMANDS
from tests.shared import CHECKOUT

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md", *sorted((CHECKOUT / "docs").glob("**/*.md"))]
STRUCTS = {
    name: struct
    for module in (protocol, calibration, collectives)
    for name, struct in inspect.getmembers(module, inspect.isclass)
    if issubclass(struct, msgspec.Struct) and struct.__module__ == module.__name__
}


def sections(text: str) -> dict[str, str]:
    """Heading (any level) and the text under it."""
    parts = re.split(r"^#+\s+(.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def anchor(heading: str) -> str:
    """The fragment by which a heading is linked to on a code host."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")


DEFINED = sections((CHECKOUT / "docs/definitions.md").read_text())


@pytest.mark.parametrize("name", STRUCTS)
def test_every_field_of_the_json_is_defined_and_no_other(name: str) -> None:
    defined = re.findall(r"^- `(\w+)`:", DEFINED[name], re.MULTILINE)
    assert defined == list(STRUCTS[name].__struct_fields__)


def test_the_python_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", (CHECKOUT / "docs/python.md").read_text(), flags=re.MULTILINE)
    page = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", "docs/python.md", 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(page, out=report.append)
    assert len(page.examples) > 20
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("name", sorted(set(rooflight.__all__) - {"__version__"}))
def test_every_public_name_is_on_the_python_page_and_has_a_docstring(name: str) -> None:
    page = sections((CHECKOUT / "docs/python.md").read_text())
    is_error = isinstance(getattr(rooflight, name), type) and issubclass(getattr(rooflight, name), Exception)
    assert f"`{name}`" in (page["Errors"] if is_error else page)
    assert inspect.getdoc(getattr(rooflight, name))


def test_every_regime_and_part_is_defined() -> None:
    named = set(re.findall(r"`(\w+)`", DEFINED["Regimes"]))
    assert set(protocol.REGIMES) <= named
    assert set(protocol.PARTS) == set(re.findall(r"^- `(\w+)`:", DEFINED["Parts"], re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, fragment = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if fragment:
            assert fragment in {anchor(h) for h in sections(file.read_text())}, (
                f"{page.name} links to {target}"
            )


def test_the_readme_names_the_two_commands_and_every_page_of_docs() -> None:
    text = (CHECKOUT / "README.md").read_text()
    assert "scripts/demo" in text
    assert "scripts/test" in text
    linked = set(re.findall(r"\]\((docs/[^)#]+)", text))
    assert linked == {str(p.relative_to(CHECKOUT)) for p in PAGES if p.parent.name == "docs"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"rooflight {command}" in (CHECKOUT / "README.md").read_text()


def test_every_path_of_the_architecture_page_exists() -> None:
    text = (CHECKOUT / "docs/architecture.md").read_text()
    paths = re.findall(
        r"`((?:rooflight|agent|app|web|migrations|tests|bench|scripts|docs|packaging)/[\w./*-]*)`", text
    )
    assert len(paths) > 20
    for path in paths:
        assert list(CHECKOUT.glob(path.rstrip("/"))), path


def test_no_page_names_a_path_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(work|home|root|tmp)/", page.read_text()), page.name
