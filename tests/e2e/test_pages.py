"""The run page in a real browser, over a real server: what is on screen is what the API says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from rooflight.protocol import Document, Evidence, Finding, Kernel
from tests.e2e.conftest import Server
from tests.e2e.screen import EVIL, SHOWN, api, drag, lit, number, open_run, rows
from tests.factories import a_document, a_rank

pytestmark = pytest.mark.browser


def test_numbers_on_the_page_are_those_of_the_api(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    rank = api(server, f"runs/{resnet}/analysis")["ranks"][0]
    wall = sum(s["step_time_us"] for s in rank["steps"]) / len(rank["steps"])
    assert number(page, "wall") == pytest.approx(wall / 1000, abs=0.05)
    lost = 0.0
    for part in ("input", "sync", "host", "dispatch", "launch", "dependency", "copy"):
        mean = sum(s["parts_us"][part] for s in rank["steps"]) / len(rank["steps"]) / 1000
        assert -number(page, part) == pytest.approx(mean, abs=0.051)
        lost += mean
    assert number(page, "kernel") + lost == pytest.approx(wall / 1000, abs=0.1)
    for i in rows(page)[:10]:
        cells = page.locator(f'[data-kernels] tr[data-i="{i}"] td')
        time_ms = float(cells.nth(2).inner_text().replace("\u202f", ""))
        assert time_ms == pytest.approx(rank["kernels"][i]["time_us"] / 1000, abs=0.0051)
        assert int(cells.nth(4).inner_text().replace("\u202f", "")) == rank["kernels"][i]["count"]


def test_a_box_on_the_chart_filters_the_table_and_the_address_keeps_it(
    page: Page, server: Server, resnet: str
) -> None:
    open_run(page, server, resnet)
    everything = rows(page)
    drag(page)
    expect(page.locator("[data-clear]")).to_be_visible()
    picked = rows(page)
    assert 0 < len(picked) < len(everything)
    assert lit(page) == set(picked)
    expect(page.locator("[data-shown]")).to_have_text(f"{len(picked)} of {len(everything)} groups")
    page.wait_for_url(re.compile("pick="))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert rows(page) == picked
    assert lit(page) == set(picked)
    page.keyboard.press("Escape")
    assert rows(page) == everything
    page.wait_for_url(re.compile(r"^[^?]*$"))


def test_a_lasso_picks_too(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    page.evaluate("document.querySelector('#roofline').scrollIntoView()")
    page.get_by_role("button", name="Lasso").click()
    box = page.locator("[data-roofline] .nsewdrag").first.bounding_box()
    assert box
    corners = [(0.4, 0.02), (0.99, 0.02), (0.99, 0.98), (0.4, 0.98), (0.4, 0.05)]
    at = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*at[0])
    page.mouse.down()
    for x, y in at[1:]:
        page.mouse.move(x, y, steps=6)
    page.mouse.up()
    expect(page.locator("[data-clear]")).to_be_visible()
    assert lit(page) == set(rows(page)) != set()


def test_the_chart_shows_ops_and_a_point_of_it_picks_their_rows(
    page: Page, server: Server, resnet: str
) -> None:
    open_run(page, server, resnet)
    page.locator('[data-level="op"]').click()
    page.wait_for_url(re.compile("level=op"))
    meta = api(server, f"runs/{resnet}/roofline?level=op")["layout"]["meta"]
    expect(page.locator("[data-drawn]")).to_have_text(
        f"{meta['n_plotted']} of {meta['n_groups']} ops; area is time"
    )
    expect(page.locator('[data-level="op"]')).to_have_attribute("aria-pressed", "true")
    drag(page)
    expect(page.locator("[data-clear]")).to_be_visible()
    kernels = api(server, f"runs/{resnet}/analysis")["ranks"][0]["kernels"]
    picked = set(rows(page))
    ops = {kernels[i]["op"] for i in picked}
    assert picked == {i for i, k in enumerate(kernels) if k["op"] in ops and k["regime"] != "copy"}
    page.wait_for_url(re.compile("pick="))  # the address follows a moment later
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator('[data-level="op"]')).to_have_attribute("aria-pressed", "true")
    assert set(rows(page)) == picked


@pytest.mark.parametrize("level", ["module", "step", "run"])
def test_every_level_says_what_it_draws(page: Page, server: Server, resnet: str, level: str) -> None:
    open_run(page, server, resnet, f"?level={level}")
    figure = api(server, f"runs/{resnet}/roofline?level={level}")
    meta = figure["layout"]["meta"]
    many = f"{meta['n_groups']} {meta['noun']}{'' if meta['n_groups'] == 1 else 's'}"
    expect(page.locator("[data-drawn]")).to_have_text(f"{meta['n_plotted']} of {many}; area is time")
    expect(page.locator("[data-sums]")).to_be_visible()
    script = """() => document.querySelector('[data-roofline]').data
      .filter(t => t.meta.role === 'points').flatMap(t => t.x)"""
    drawn = page.evaluate(script)
    assert len(drawn) == meta["n_plotted"]


def test_search_and_regimes_dim_the_points(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    page.keyboard.press("/")
    page.keyboard.type("functor1")
    found = rows(page)
    names = [api(server, f"runs/{resnet}/analysis")["ranks"][0]["kernels"][i]["name"] for i in found]
    assert found
    assert all("Functor1" in n for n in names)
    assert lit(page) <= set(found)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.locator('button[data-regime="memory"]').click()
    regimes = page.eval_on_selector_all(SHOWN, "e => e.map(r => r.dataset.regime)")
    assert set(regimes) == {"memory"}
    page.wait_for_url(re.compile("regime=memory"))


def test_sorting_says_its_direction_and_is_kept(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    page.locator('[data-sort="roof"]').click()
    heading = page.locator("th", has=page.locator('[data-sort="roof"]'))
    expect(heading).to_have_attribute("aria-sort", "descending")
    kernels = api(server, f"runs/{resnet}/analysis")["ranks"][0]["kernels"]
    fractions = [kernels[i]["roof_fraction"] for i in rows(page)]
    known = [f for f in fractions if f is not None]
    assert known == sorted(known, reverse=True)
    assert fractions[: len(known)] == known  # the unknown last
    page.wait_for_url(re.compile("sort=-roof"))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator("th", has=page.locator('[data-sort="roof"]'))).to_have_attribute(
        "aria-sort", "descending"
    )


def test_keys_move_open_and_help(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = rows(page)[1]
    expect(page.locator(f'tr[data-i="{second}"]')).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    full = api(server, f"runs/{resnet}/analysis")["ranks"][0]["kernels"][second]["name"]
    expect(page.locator("[data-fullname]")).to_have_text(full)
    page.wait_for_url(re.compile(f"row={second}"))
    page.reload()
    expect(page.locator("[data-fullname]")).to_have_text(full)
    page.keyboard.press("?")
    expect(page.locator("dialog.help")).to_be_visible()


def test_keys_walk_over_the_runs_and_open_one(page: Page, server: Server, resnet: str) -> None:
    page.goto(server.url)
    page.wait_for_selector("html[data-ready]")
    runs = page.eval_on_selector_all("[data-run]", "e => e.map(r => r.dataset.run)")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/runs/{runs[0]}")


def test_an_unknown_address_is_a_page(page: Page, server: Server) -> None:
    answer = page.request.get(f"{server.url}/nowhere", headers={"Accept": "text/html"})
    assert answer.status == 404
    assert "There is no such page" in answer.text()


def test_the_memory_roof_is_named_inside_the_frame(
    page: Page, server: Server, push: Callable[[str, Document], str]
) -> None:
    """Points of little intensity stretch x to the left: there the slope runs far below the frame."""
    document = a_document(kernels=8)
    sliver = Kernel(
        name="sliver", count=1, time_us=1.0, dtype="fp32", flops=10, bytes=10**6, ai=1e-5,
        achieved_tflops=1e-5, regime="latency", origin="modelled",
    )  # fmt: skip
    document.ranks[0].kernels.append(sliver)
    open_run(page, server, push("sliver", document))
    word = page.locator("[data-roofline] .annotation", has_text="Memory").bounding_box()
    frame = page.locator("[data-roofline] .nsewdrag").first.bounding_box()
    assert word
    assert frame
    assert frame["y"] < word["y"] < word["y"] + word["height"] < frame["y"] + frame["height"]
    assert frame["x"] < word["x"] < word["x"] + word["width"] < frame["x"] + frame["width"]


def test_names_from_outside_stay_text(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    source = page.request.get(f"{server.url}/runs/{resnet}").text()
    assert "&lt;4, at::native::FillFunctor&lt;int&gt;" in source
    assert "<img" not in source
    row = page.locator("tr", has_text="FillFunctor<int>").first
    expect(row.locator(".mono")).to_have_text(EVIL)
    row.click()
    expect(page.locator("[data-fullname]")).to_have_text(EVIL)
    expect(page.locator("[data-point]")).to_contain_text("FillFunctor<int>")
    drawn = page.evaluate(
        """() => { const el = document.querySelector('[data-roofline]');
          for (const [c, t] of el.data.entries()) if (t.meta.role === 'points') {
            const p = t.customdata.findIndex(d => d[1].includes('FillFunctor'));
            if (p >= 0) { Plotly.Fx.hover(el, [{curveNumber: c, pointNumber: p}]); return true; }
          } return false; }"""
    )
    assert drawn
    label = page.locator("[data-roofline] .hoverlayer")
    expect(label).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0
    assert "hacked" not in page.title()


def test_a_step_has_its_own_address(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet, "?q=functor")
    page.locator('a[data-step="7"]').click()
    page.wait_for_selector("html[data-ready]")
    assert "step=7" in page.url
    assert "q=functor" in page.url
    expect(page.locator("#time header p")).to_contain_text("step 7")
    expect(page.locator('a[data-step="7"]')).to_have_attribute("aria-current", "true")


def test_the_theme_is_remembered_and_repaints_the_chart(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    colour = "() => document.querySelector('[data-roofline]').layout.xaxis.gridcolor"
    light = page.evaluate(colour)
    page.locator("[data-theme-switch]").click()
    page.wait_for_function(f"({colour})() !== {json.dumps(light)}")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_everything_that_can_be_pressed_has_a_name(page: Page, server: Server, resnet: str) -> None:
    open_run(page, server, resnet)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('a[href], button, input, [role=img], [role=region]')]
          .filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length || e.title))
          .map(e => e.outerHTML)"""
    )
    assert nameless == []
    ids = page.evaluate(
        "[...document.querySelectorAll('[id]')].map(e => e.id).filter(i => !i.startsWith('clip'))"
    )
    assert len(ids) == len(set(ids))
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("width", [390, 768, 1440, 2560])
def test_nothing_hangs_over_the_edge(page: Page, server: Server, resnet: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for address in (f"/runs/{resnet}", "/"):
        page.goto(server.url + address)
        page.wait_for_selector("html[data-ready]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_word_in_the_evidence_breaks_on_a_phone(
    page: Page, server: Server, push: Callable[[str, Document], str]
) -> None:
    document = a_document()
    seen = [Evidence("igemm_fwd_gtcx3_nhwc_bf16_" * 8, [0, 1]), Evidence("void_at_native_" * 20)]
    document.ranks[0].findings = [Finding("long", "A long name", 1_000.0, "none", seen, "shorten it")]
    run = push("long", document)
    page.set_viewport_size({"width": 390, "height": 900})
    open_run(page, server, run)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_ranks_are_picked_by_address(
    page: Page, server: Server, push: Callable[[str, Document], str]
) -> None:
    import random

    document = a_document()
    document.ranks = [a_rank(kernels=5 + i, steps=30, rng=random.Random(i)) for i in range(12)]
    for i, rank in enumerate(document.ranks):
        rank.rank = i
    document.world_size = 12
    run = push("twelve ranks", document)
    open_run(page, server, run)
    assert len(rows(page)) == 5
    assert page.locator(".columns a").count() == 30
    page.get_by_role("navigation", name="Rank").get_by_text("Rank 2", exact=True).click()
    page.wait_for_selector("html[data-ready]")
    assert "rank=2" in page.url
    assert len(rows(page)) == 7
    assert page.request.get(f"{server.url}/runs/{run}?rank=12").status == 404
    page.set_viewport_size({"width": 390, "height": 844})
    open_run(page, server, run)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_page_has_its_json(server: Server, page: Page, resnet: str) -> None:
    json_only = {"Accept": "application/json"}
    run = page.request.get(f"{server.url}/runs/{resnet}", headers=json_only).json()
    assert run == api(server, f"runs/{resnet}/analysis")
    listed = page.request.get(f"{server.url}/", headers=json_only).json()
    assert resnet in [r["id"] for r in listed["items"]]
    missing = page.request.get(f"{server.url}/runs/none")
    assert missing.status == 404
    assert "no such run" in missing.text()
