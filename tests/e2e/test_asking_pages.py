"""What-ifs and captures, asked for on the pages of a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from rooflight.protocol import Document, Parts, Percentiles
from tests.e2e.conftest import Server
from tests.e2e.screen import EVIL, WIDE, api, open_run, rows
from tests.factories import a_document

pytestmark = pytest.mark.browser


def middle(page: Page, line: int = 0) -> float:
    """The middle on a line of the what-if, in ms."""
    return float(page.locator(f'[data-line="{line}"] b').inner_text().replace("\u202f", ""))


def test_a_what_if_is_asked_on_the_page_and_kept_in_the_address(
    page: Page, server: Server, resnet: str
) -> None:
    open_run(page, server, resnet, "?q=functor")
    form = page.locator("[data-whatif]")
    form.get_by_label("Another GPU").select_option("h100-sxm")
    form.get_by_label("Number type").select_option("bf16")
    form.get_by_label("input never waits").check()
    form.get_by_label("Price of a GPU hour there").fill("2.50")
    form.get_by_role("button", name="Predict").click()
    page.wait_for_url(re.compile("gpu=h100-sxm"))
    page.wait_for_selector("html[data-ready]")
    assert "q=functor" in page.url
    asked = "gpu=h100-sxm&dtype=bf16&input_ready=true"
    found = api(server, f"runs/{resnet}/whatif?{asked}&price=2.5")
    assert middle(page) == pytest.approx(found["step_time_us"]["mid"] / 1000, abs=0.06)
    assert middle(page, 1) == pytest.approx(found["kernel_time_us"]["mid"] / 1000, abs=0.06)
    usd = 1_000 * found["cost_per_step"]["mid"]
    expect(page.locator("[data-said]")).to_contain_text(f"in the middle ${usd:.3f}, at $2.50")
    expect(page.get_by_label("input never waits")).to_be_checked()
    json_link = page.locator("#whatif footer a").get_attribute("href")
    assert json_link == f"/api/v1/runs/{resnet}/whatif?{asked}"
    page.locator("[data-unask]").click()
    page.wait_for_url(re.compile(r"\?q=functor#whatif$"))
    expect(page.locator("[data-said]")).to_have_count(0)


def test_a_what_if_needs_no_script(browser: Browser, server: Server, resnet: str) -> None:
    plain = browser.new_context(viewport=WIDE, java_script_enabled=False)
    page = plain.new_page()
    page.goto(f"{server.url}/runs/{resnet}?price=3.60&step=7")
    form = page.locator("[data-whatif]")
    form.get_by_label("roofs reached").check()
    form.get_by_role("button", name="Predict").click()
    page.wait_for_url(re.compile("roofs_reached=true"))
    assert "price=3.60" in page.url
    assert "step=7" in page.url
    found = api(server, f"runs/{resnet}/whatif?roofs_reached=true")
    assert middle(page) == pytest.approx(found["step_time_us"]["mid"] / 1000, abs=0.06)
    expect(page.locator("[data-said]")).to_contain_text("at $3.60 per GPU and hour")
    plain.close()


def test_no_prediction_without_a_verdict(
    page: Page, server: Server, push: Callable[[str, Document], str]
) -> None:
    document = a_document()
    document.ranks[0].verdict_withheld = "most steps hold no GPU work"
    open_run(page, server, push("withheld", document), "?gpu=h100-sxm")
    expect(page.locator("#whatif [data-withheld]")).to_contain_text("most steps hold no GPU work")
    expect(page.locator("[data-whatif]")).to_have_count(0)


def test_phases_modules_and_percentiles_are_those_of_the_api(
    page: Page, server: Server, push: Callable[[str, Document], str]
) -> None:
    document = a_document(steps=6)
    rank = document.ranks[0]
    rank.phase_parts_us = {"forward": Parts(compute=240_000), "backward": Parts(memory=120_000)}
    rank.percentiles_us = {"step_time": Percentiles(174_800.0, 180_000.0, 190_000.0)}
    for i, k in enumerate(rank.kernels):
        k.module_path, k.steps_exclusive_us = ("Net > Block" if i < 4 else EVIL), k.time_us
    run = push("cut", document)
    open_run(page, server, run)
    kept = api(server, f"runs/{run}/analysis")["ranks"][0]
    for phase, parts in kept["phase_parts_us"].items():
        cell = page.locator(f'[data-phase="{phase}"] td').nth(2)
        assert float(cell.inner_text()) == pytest.approx(sum(parts.values()) / 6 / 1000, abs=0.051)
    cells = page.locator('[data-spread="step_time"] td.num')
    assert cells.all_inner_texts() == ["174.8", "180.0", "190.0"]
    page.get_by_role("link", name="Block").click()
    page.wait_for_url(re.compile("pick=0-3"))
    page.wait_for_selector("html[data-ready]")
    assert sorted(rows(page)) == [0, 1, 2, 3]
    assert "hacked" not in page.title()


def test_a_capture_is_ordered_on_the_page_and_followed_to_its_run(
    page: Page, server: Server, token: str, resnet: str
) -> None:
    page.goto(f"{server.url}/captures")
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("Host", exact=True).fill("gpu-node-01")
    page.get_by_label("Project", exact=True).fill("vision")
    page.get_by_label("Processes", exact=True).fill("python")
    page.get_by_role("button", name="Record").click()
    expect(page.locator("[data-problem]")).to_contain_text("not “python”")
    page.get_by_label("Processes", exact=True).fill("4711 4712")
    page.get_by_label("stacks", exact=True).check()
    page.get_by_role("button", name="Record").click()
    row = page.locator("[data-capture]").first
    expect(row).to_contain_text("3\u00a0steps, processes 4711, 4712, shapes, stacks")
    expect(page.locator("[data-told]")).to_contain_text("1 pending")
    [kept] = api(server, "captures")["items"]
    assert (kept["host"], kept["project"], kept["order"]["pids"]) == ("gpu-node-01", "vision", [4711, 4712])
    said = {
        "state": "done", "run_id": resnet,
        "processes": [
            {"pid": 4711, "state": "written", "rank": 0, "command": EVIL},
            {"pid": 4712, "state": "failed", "rank": 1, "problem": "process 4712: it ended before it asked"},
        ],
    }  # fmt: skip
    answered = page.request.put(
        f"{server.url}/api/v1/captures/{kept['id']}/outcome",
        data=said,
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answered.ok, answered.text()
    expect(row).to_contain_text("it ended before it asked", timeout=10_000)  # without a reload
    expect(page.locator("[data-told]")).to_contain_text("none pending")
    assert page.locator("main img").count() == 0
    for width in (390, 768, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    row.get_by_role("link", name="Open the run").click()
    page.wait_for_url(f"{server.url}/runs/{resnet}")
