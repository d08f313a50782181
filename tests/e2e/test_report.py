"""The report in a real browser, opened as a file: it draws, and nothing leaves it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from rooflight.cli.main import main
from rooflight.prices.rate import Rate
from rooflight.protocol import Document, Evidence, Finding
from rooflight.report.html import Options, report
from tests import shared
from tests.factories import a_document, a_rank

pytestmark = pytest.mark.browser
EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><4, at::native::FillFunctor<int>"


Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Writes a document's report and opens it; a request, or a word on the console, fails the test."""
    said: list[str] = []
    pages: list[Page] = []

    def open_(document: Document | Path, *, width: int = 1440, scheme: str = "light") -> Page:
        path = document if isinstance(document, Path) else tmp_path / "report.html"
        if isinstance(document, Document):
            path.write_text(report(document, Options(rate=Rate(Decimal("3.06")))), "utf-8")
        page = browser.new_page(viewport=ViewportSize(width=width, height=900), color_scheme=scheme)  # type: ignore[arg-type]
        page.on("console", lambda m: said.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: said.append(f"uncaught: {e}"))
        page.on("request", lambda r: said.append(r.url) if r.url != path.as_uri() else None)
        page.goto(path.as_uri())
        expect(page.locator("html[data-drawn]")).to_have_count(1)
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.close()
    assert said == []


def a_finding(rows: list[int]) -> Finding:
    return Finding(
        "input-starved", "The device waits", 17_480.0, "none is late", [Evidence("waits", rows)], "Fix"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1440, 2560])
def test_the_chart_is_drawn_and_nothing_hangs_over_the_edge(opened: Open, width: int, scheme: str) -> None:
    page = opened(a_document(kernels=40), width=width, scheme=scheme)
    # One of four groups has no cost (a_kernel): 30 have their place, unless below the frame.
    assert page.locator("#plot .points path").count() == 30
    assert page.locator("#plot .lines path").count() >= 4, "two roofs, practical and datasheet"
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_light_and_dark_are_one_file(opened: Open) -> None:
    page = opened(a_document())
    panel, title = page.locator(".panel").first, page.locator("#plot .xtitle")
    # tokens.css: surface and ink-2, as they are resolved
    expect(panel).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(title).to_have_css("fill", "rgb(68, 75, 87)")
    page.emulate_media(color_scheme="dark")
    expect(panel).to_have_css("background-color", "rgb(21, 24, 29)")
    expect(title).to_have_css("fill", "rgb(180, 187, 199)")


def test_names_from_outside_stay_text(opened: Open) -> None:
    doc = a_document(kernels=8)
    for k in doc.ranks[0].kernels:
        k.name = k.short_name = k.op = EVIL
    page = opened(doc)
    assert page.title() == "Rooflight: train.pt.trace.json"
    assert page.locator("img").count() == 0
    expect(page.locator("#k0 .mono")).to_have_text(EVIL)
    # A point, then its label over the chart.
    page.locator("#plot").scroll_into_view_if_needed()
    box = page.locator("#plot .points path").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#plot .hoverlayer text").first).to_contain_text("onerror")
    assert page.locator("#plot image, #plot img").count() == 0


def test_a_word_filters_the_table(opened: Open) -> None:
    page = opened(a_document(kernels=12))
    assert page.locator("#kernels tbody tr:visible").count() == 12
    page.locator("#filter").fill("functor3 ")
    assert page.locator("#kernels tbody tr:visible").count() == 1
    page.locator("#filter").fill("LATENCY elementwise")
    assert page.locator("#kernels tbody tr:visible").count() == 3  # a_kernel: 2, 6 and 10 of 12
    page.locator("#filter").fill("")
    assert page.locator("#kernels tbody tr:visible").count() == 12


def test_a_point_finds_its_row_and_evidence_too(opened: Open) -> None:
    doc = a_document(kernels=12)
    doc.ranks[0].findings = [a_finding([5])]
    page = opened(doc)
    page.locator("#findings a", has_text="row").click()
    assert page.evaluate("document.querySelector('tr:target').id") == "k5"
    # Points of a regime are drawn together; a_kernel gives row 0 to compute, the first of them.
    page.locator("#plot .points path").first.click(force=True)
    expect(page.locator("tr.picked")).to_have_attribute("id", "k0")


def test_ranks_and_many_steps_fit_a_phone(opened: Open) -> None:
    doc = a_document(kernels=30, steps=60)
    doc.ranks += [a_rank(kernels=3, steps=2, rng=random.Random(n)) for n in range(1, 4)]
    for n, rank in enumerate(doc.ranks):
        rank.rank = n
    page = opened(doc, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".columns li").count() == 60
    assert page.locator("#ranks tbody tr").count() == 4


def steps(document: Document) -> None:
    document.ranks[0].findings = [a_finding([0, 5])] * 4


def no_steps(document: Document) -> None:
    document.ranks[0].steps, document.ranks[0].n_steps = [], 0


def several_ranks(document: Document) -> None:
    document.ranks += [a_rank(kernels=3, steps=2, rng=random.Random(n)) for n in range(1, 4)]
    for n, rank in enumerate(document.ranks):
        rank.rank = n


def withheld(document: Document) -> None:
    rank = document.ranks[0]
    rank.regime, rank.grade, rank.verdict_withheld = None, "unreliable", "most steps hold no GPU work"


def counters(document: Document) -> None:
    for k in document.ranks[0].kernels:
        if k.flops is not None:
            k.origin = "measured"


#: Every report is priced (``opened``); what each kind has to say.
KINDS = {
    steps: "$3.06 per GPU and hour",
    no_steps: "no steps are known",
    several_ranks: "Ranks",
    withheld: "most steps hold no GPU work",
    counters: "measured",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_run_opens_without_a_request_or_a_word_on_the_console(
    opened: Open, kind: Callable[[Document], None]
) -> None:
    document = a_document(kernels=20)
    kind(document)
    page = opened(document, width=390)
    expect(page.locator("main")).to_contain_text(KINDS[kind])
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#plot .points path").count() > 0


def test_a_report_of_100_000_launches_is_under_8_mb(opened: Open, tmp_path: Path) -> None:
    """Launches of 2,000 kernels, each with its launch, 10 µs apart."""
    events: list[dict[str, object]] = []
    for i in range(100_000):
        at, ids = 10 * i, {"correlation": i + 1, "External id": i + 1}
        on_device = {**ids, "device": 0, "stream": 7, "grid": [80, 1, 1], "block": [128, 1, 1]}
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 2}
        kernel = {"cat": "kernel", "name": f"kernel_{i % 2_000}<float>", "pid": 0, "tid": 7, "ts": at + 3}
        events += [{"ph": "X", "args": ids, **launch}, {"ph": "X", "dur": 6, "args": on_device, **kernel}]
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}
    trace, out = tmp_path / "many.json", tmp_path / "many.html"
    trace.write_text(json.dumps({"deviceProperties": [device], "traceEvents": events}), "utf-8")
    assert main(["report", str(trace), "-o", str(out)]) == 0
    assert out.stat().st_size < 8_000_000
    page = opened(out)
    expect(page.locator("#kernels")).to_contain_text("1,800")  # 200 of 2,000 groups have a row


@pytest.mark.traces
def test_a_real_trace_by_the_command(opened: Open, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    trace = shared.traces_dir() / "v100_resnet50_workers0.pt.trace.json.gz"
    assert main(["report", str(trace), "-o", str(out)]) == 0
    assert out.stat().st_size < 8_000_000
    page = opened(out)
    expect(page.locator(".verdict b")).to_have_text("Bound by input (high confidence):")
    expect(page.locator("#findings h3").first).to_have_text("The device waits for the next batch")
    assert page.locator("#kernels tbody tr").count() == 200
