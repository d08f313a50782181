"""What ``scripts/demo --check`` holds true of the served run, page against API."""

from __future__ import annotations

import html.parser
import json
import math
import re
import statistics
from typing import Any

import summary
from service import DemoError, Service

REGIMES = {"compute", "memory", "latency", "communication", "input", "host", "copy", "dependency"}


class PageParts(html.parser.HTMLParser):
    """The scripts and style sheets of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.files: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "script" and named.get("src"):
            self.files.append(str(named["src"]))
        if tag == "link" and "stylesheet" in str(named.get("rel")):
            self.files.append(str(named["href"]))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        """The text on one line; the narrow spaces between thousands are gone, so 1 009.2 is 1009.2."""
        return " ".join(" ".join(self.text).replace("\u202f", "").split())

    def shows_time(self, us: float) -> bool:
        """Whether some number is ``us``, in µs, ms or s, as far as it is written; those of few digits,
        which are on every page, do not count."""
        numbers = re.findall(r"\d+\.\d\d+|\d\d+\.\d|\d{3,}", self.words)
        return any(_is_rounded(us / unit, number) for unit in (1.0, 1e3, 1e6) for number in numbers)


def _is_rounded(value: float, number: str) -> bool:
    decimals = len(number.partition(".")[2])
    return abs(value - float(number)) <= 0.5000001 * 10**-decimals


def require(holds: bool, what: str) -> None:
    """Fail the check with ``what`` was expected."""
    if not holds:
        raise DemoError(f"check failed: {what}")


def fetch_json(service: Service, path: str) -> Any:
    """A strict JSON answer of status 200: NaN and Infinity are no JSON."""
    reply = service.get(path)
    require(reply.status == 200, f"GET {path} answers 200, not {reply.status}: {reply.body[:300]!r}")
    require(reply.content_type == "application/json", f"GET {path} is JSON, not {reply.content_type}")
    return json.loads(reply.body, parse_constant=lambda token: require(False, f"GET {path} holds no {token}"))


def check_api(service: Service, run: str) -> dict[str, Any]:
    """The analysis is whole and the other resources say the same; returns it."""
    document: dict[str, Any] = fetch_json(service, f"/api/v1/runs/{run}/analysis")
    rank = document["ranks"][0]
    require(bool(summary.rows(rank)), "the run has kernels or ops")
    for step in summary.steps(rank):
        _check_parts(step)
    for row in summary.rows(rank):
        _check_product(row)
    subject = rank["cpu"] or rank
    reasons = (rank["verdict_withheld"], subject["regime_reason"])
    require(subject["regime"] in REGIMES or any(reasons), "the run has a regime, or the reason why not")
    for name in ("kernels", "steps", "regimes", "roofline"):
        require(bool(fetch_json(service, f"/api/v1/runs/{run}/{name}")), f"GET {name} is not empty")
    return document


def _check_parts(step: dict[str, Any]) -> None:
    """Parts are whole nanoseconds in µs with three decimals: their sum is exact to half of one."""
    if not step["parts_us"]:
        return
    total = math.fsum(step["parts_us"].values())
    wall = step["step_time_us"]
    require(abs(total - wall) < 0.0005, f"the parts of step {step['n']} sum to {wall} us, not {total}")


def _check_product(row: dict[str, Any]) -> None:
    """A plain matrix product [m, k] @ [k, n] is 2 m k n FLOPs a call, whatever measured it."""
    dims = re.fullmatch(r"\[\[(\d+), (\d+)\], \[\d+, (\d+)\]\]", row["input_dims"] or "")
    # On a GPU an op may have several kernels that share it.
    if dims and row["op"] == "aten::mm" and row["kind"] == "op":
        m, k, n = map(int, dims.groups())
        flops = 2 * m * k * n * row["count"]
        require(
            row["flops"] == str(flops),
            f"{row['count']} x aten::mm {dims[0]} is {flops} FLOPs, not {row['flops']}",
        )


def check_page(service: Service, run: str, document: dict[str, Any]) -> None:
    """The run's page is served whole and shows the API's numbers."""
    path = f"/runs/{run}"
    reply = service.get(path)
    require(reply.status == 200, f"GET {path} answers 200, not {reply.status}")
    page = PageParts(reply.body.decode())
    rank = document["ranks"][0]
    for row in summary.rows(rank)[:3]:
        name = row["short_name"] or row["name"]
        require(" ".join(name.split()) in page.words, f"the page names {name}")
        require(page.shows_time(row["time_us"]), f"the page shows {row['time_us']} us of {name}")
    times = [step["step_time_us"] for step in summary.steps(rank)]
    if times:
        middle = statistics.median(times)
        require(page.shows_time(middle), f"the page shows the step time of {middle} us")
    regime = (rank["cpu"] or rank)["regime"]
    require(regime is None or regime in page.words.lower(), f"the page says {regime}")
    check_files(service, page.files)


def check_files(service: Service, paths: list[str]) -> None:
    """Every script and style sheet of the page comes from this server; plotly is among them."""
    kinds = {".css": "text/css", ".js": "text/javascript"}
    for path in paths:
        require(path.startswith("/"), f"{path} is served by Rooflight itself")
        reply = service.get(path)
        require(reply.status == 200 and bool(reply.body), f"GET {path} answers 200, not {reply.status}")
        suffix = "." + path.partition("?")[0].rpartition(".")[2]
        require(
            reply.content_type == kinds.get(suffix),
            f"{path} is {kinds.get(suffix)}, not {reply.content_type}",
        )
    for what in (".css", ".js", "plotly"):
        require(any(what in path for path in paths), f"the page loads {what}")
