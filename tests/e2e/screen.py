"""What tests of the pages read off the screen, and do on it."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><4, at::native::FillFunctor<int>"
#: What Chromium itself logs when the service refuses a trace on purpose.
REFUSAL = re.compile(r"Failed to load resource: the server responded with a status of (400|413|422)")
WIDE = {"width": 1440, "height": 900}


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
