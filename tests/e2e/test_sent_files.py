"""Files that reach the service through a real browser, and those that it hands out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from rooflight.protocol import PARTS, Document, Percentiles
from tests import shared
from tests.e2e.conftest import Server
from tests.e2e.screen import api, drag, lit, number, open_run, rows
from tests.factories import a_document

pytestmark = pytest.mark.browser


def test_many_groups_come_200_at_a_time(
    page: Page, server: Server, push: Callable[[str, Document], str]
) -> None:
    document = a_document(kernels=2_500)
    rank = document.ranks[0]
    rank.percentiles_us = {p: Percentiles(1.0, 2.0, 3.0) for p in ("step_time", *PARTS)}
    for i, k in enumerate(rank.kernels):
        k.module_path = " > ".join(f"SomeLongModuleName_{i % n}" for n in (2, 12, 40))
        k.steps_exclusive_us = k.time_us
    run = push("many", document)
    answer = page.request.get(f"{server.url}/runs/{run}")
    assert len(answer.body()) < 300_000  # without plotly, whatever the number of groups
    open_run(page, server, run)
    assert len(rows(page)) == 200
    expect(page.locator("[data-shown]")).to_contain_text("200 of 2\u202f500 groups")
    expect(page.locator("#kernels footer")).to_contain_text("2\u202f000 longest of 2\u202f500")
    page.get_by_role("button", name="Show 200 more").click()
    assert len(rows(page)) == 400


def test_files_have_cache_headers(server: Server, page: Page) -> None:
    plotly = page.request.get(f"{server.url}/static/plotly.min.js?v=1")
    assert plotly.ok
    assert "immutable" in plotly.headers["cache-control"]
    assert page.request.get(f"{server.url}/static/js/state.js").headers["cache-control"] == "no-cache"
    assert page.request.get(f"{server.url}/static/../templates/run.html").status == 404


def test_a_file_that_is_no_trace_is_refused_in_words(page: Page, server: Server, tmp_path: Any) -> None:
    path = tmp_path / "notes.json"
    path.write_text('{"hello": "world"}')
    page.goto(server.url)
    page.set_input_files("[data-files]", path)
    failed = page.locator(".upload[data-failed]")
    expect(failed).to_contain_text("Not accepted", timeout=60_000)
    why = failed.locator(".why")
    expect(why).to_have_text(re.compile(r"^Not a trace: it has no traceEvents.*\. Send .*\.$"))
    row, text = failed.bounding_box(), why.bounding_box()
    assert row
    assert text
    assert text["width"] > row["width"] - 40  # over the whole row, but for its padding
    assert page.url.rstrip("/") == server.url


def test_a_dropped_file_is_sent(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.wait_for_selector("html[data-ready]")
    page.evaluate(
        """() => { const data = new DataTransfer();
          data.items.add(new File(['{"traceEvents": [tru'], 'cut <b>off</b>.json'));
          const drop = new DragEvent('drop', {dataTransfer: data, bubbles: true});
          document.querySelector('main').dispatchEvent(drop); }"""
    )
    failed = page.locator(".upload[data-failed]")
    expect(failed).to_contain_text("cut <b>off</b>.json", timeout=60_000)
    expect(failed.locator(".why")).not_to_be_empty()


@pytest.mark.traces
def test_a_real_trace_is_dropped_and_its_page_opens(page: Page, server: Server) -> None:
    """The main road: a trace is sent, its page opens, a pick on the chart narrows the table for good."""
    path = shared.traces_dir() / "v100_resnet50_workers0.pt.trace.json.gz"
    page.goto(server.url)
    page.set_input_files("[data-files]", path)
    page.wait_for_url(re.compile(r"/runs/"), timeout=180_000)
    page.wait_for_selector("html[data-ready]")
    run = page.url.rsplit("/", 1)[1]
    rank = api(server, f"runs/{run}/analysis")["ranks"][0]
    for step, us in ((6, 57_041), (7, 60_590), (8, 55_855), (9, 62_036), (10, 48_185)):
        assert next(s for s in rank["steps"] if s["n"] == step)["parts_us"]["input"] == pytest.approx(
            us, abs=1
        )
    expect(page.locator(".verdict")).to_contain_text("Input-bound")
    mean = sum(s["parts_us"]["input"] for s in rank["steps"]) / len(rank["steps"]) / 1000
    assert -number(page, "input") == pytest.approx(mean, abs=0.051)
    everything = rows(page)
    drag(page, part=0.4)
    expect(page.locator("[data-clear]")).to_be_visible()
    picked = rows(page)
    assert 0 < len(picked) < len(everything)
    page.wait_for_url(re.compile("pick="))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert rows(page) == picked
    assert lit(page) == set(picked)


@pytest.mark.traces
def test_a_loader_with_workers_is_not_starved(page: Page, server: Server) -> None:
    path = shared.traces_dir() / "v100_resnet50_workers4.pt.trace.json.gz"
    page.goto(server.url)
    page.set_input_files("[data-files]", path)
    page.wait_for_url(re.compile(r"/runs/"), timeout=180_000)
    page.wait_for_selector("html[data-ready]")
    expect(page.locator(".verdict")).not_to_contain_text("Input-bound")
