"""A report as a browser would find it, and findings to show in one."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from rooflight.protocol import Document, Evidence, Finding
from rooflight.report.html import Options, report

EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><4, at::FillFunctor<int>>\u202e\x00\ud800"


class Page(HTMLParser):
    """What a browser would find: elements, text by element, attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.open: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.tags.append((tag, given))
        if tag == "script":
            self.scripts.append((given, ""))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"[\s\u00a0]+", " ", " ".join(self.text))

    def figure(self) -> dict[str, object]:
        return dict(json.loads(next(body for given, body in self.scripts if given.get("id") == "figure")))


def page(document: Document, options: Options | None = None) -> Page:
    return Page(report(document, options or Options()))


def a_finding(saving_us: float | None = 17_480.0, **given: object) -> Finding:
    fields: dict[str, object] = {
        "code": "input-starved", "title": "The device waits", "assumption": "no batch is late",
        "evidence": [Evidence("three waits", [0, 5_000], [5, 6])], "fix": "Give it workers; look again.",
        "regime": "input",
    }  # fmt: skip
    return Finding(saving_us=saving_us, **{**fields, **given})  # type: ignore[arg-type]
