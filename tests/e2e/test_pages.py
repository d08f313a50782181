"""The pages in a real browser, over a real server: what is on screen is what the API says."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from rooflight import protocol
from rooflight.protocol import PARTS, Document, Evidence, Finding, Kernel, Parts, Percentiles
from tests import shared
from tests.e2e.conftest import Server
from tests.factories import a_document, a_rank

pytestmark = pytest.mark.browser
EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><4, at::native::FillFunctor<int>"
#: What Chromium itself logs when the service refuses a trace on purpose.
REFUSAL = re.compile(r"Failed to load resource: the server responded with a status of (400|413|422)")
WIDE = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as p:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = p.chromium.launch(executable_path=shared.chromium(), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for all tests, so that plotly's 4.8 MB are fetched once, as they are for a reader."""
    opened = browser.new_context(viewport=WIDE)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page whose console stays silent: an error, or a violation of the CSP, fails the test."""
    opened = context.new_page()
    said: list[str] = []
    opened.on(
        "console", lambda m: said.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda e: said.append(f"uncaught: {e}"))
    yield opened
    if opened.url.startswith("http"):
        opened.evaluate("localStorage.clear()")
    opened.close()
    assert [line for line in said if not REFUSAL.search(line)] == []


@pytest.fixture(scope="module")
def push(server: Server, token: str) -> Callable[[str, Document], str]:
    """Push a document as a run of its own and give the run's id."""

    def call(path: str, body: bytes) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.url}/api/v1/{path}", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def pushed(name: str, document: Document) -> str:
        project = call("projects", b'{"name": "vision"}')
        run = call(f"projects/{project['id']}/runs", json.dumps({"name": name}).encode())
        call(f"runs/{run['id']}/profiles", protocol.encode(document))
        return str(run["id"])

    return pushed


def api(server: Server, path: str) -> Any:
    with urllib.request.urlopen(f"{server.url}/api/v1/{path}", timeout=60) as answer:
        return json.load(answer)


def open_run(page: Page, server: Server, run: str, query: str = "") -> None:
    page.goto(f"{server.url}/runs/{run}{query}")
    page.wait_for_selector("html[data-ready]")


SHOWN = "[data-kernels] tbody tr[data-i]:not([hidden])"


def number(page: Page, part: str) -> float:
    """The milliseconds on a line of the waterfall, with its sign."""
    text = page.locator(f'[data-part="{part}"] .num').first.inner_text()
    return float(text.replace("−", "-").replace("\u202f", ""))


def rows(page: Page) -> list[int]:
    """The indices of the rows on screen, from top to bottom."""
    return [int(v) for v in page.eval_on_selector_all(SHOWN, "e => e.map(r => r.dataset.i)")]


def lit(page: Page) -> set[int]:
    """The rows whose points are not dimmed."""
    script = """() => document.querySelector('[data-roofline]').data.filter(t => t.meta.role === 'points')
      .flatMap(t => t.customdata
        .filter((c, i) => !t.selectedpoints || t.selectedpoints.includes(i)).map(c => c[0]))"""
    return set(page.evaluate(script))


def drag(page: Page, *, part: float = 0.5) -> None:
    """Draw a box over the right part of the chart."""
    page.evaluate("document.querySelector('#roofline').scrollIntoView()")
    box = page.locator("[data-roofline] .nsewdrag").first.bounding_box()
    assert box
    x0 = box["x"] + box["width"] * part
    page.mouse.move(x0, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(x0 + 40, box["y"] + 60, steps=4)
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=8)
    page.mouse.up()


@pytest.fixture(scope="module")
def resnet(push: Callable[[str, Document], str]) -> str:
    document = a_document(kernels=60, steps=6)
    evil = Kernel(
        name=EVIL, short_name=EVIL, op="aten::<b>evil</b>", count=3, time_us=2_000.0, dtype="fp32",
        flops=10**9, bytes=10**7, ai=100.0, achieved_tflops=0.5, achieved_gbs=5.0, roof_fraction=0.04,
        regime="latency", origin="modelled",
    )  # fmt: skip
    document.ranks[0].kernels.append(evil)
    return push("resnet50", document)


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
