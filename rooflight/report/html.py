"""The report: one HTML file that holds all it shows, loads nothing and opens from anywhere.

Its Content-Security-Policy allows the two scripts in it, by their hashes, no other one and no request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from rooflight import __version__
from rooflight.errors import Refused
from rooflight.figures.roofline import subject
from rooflight.prices.rate import Rate
from rooflight.protocol import Document, Rank
from rooflight.report.advice import advice
from rooflight.report.bars import HATCH
from rooflight.report.chart import chart
from rooflight.report.communication import communication
from rooflight.report.cuts import cuts
from rooflight.report.headline import headline
from rooflight.report.kernels import kernels
from rooflight.report.library import plotly_js
from rooflight.report.markup import Html, join, script, style, tag
from rooflight.report.money import money_of
from rooflight.report.quality import quality
from rooflight.report.ranks import ranks
from rooflight.report.summary import counted, summarise
from rooflight.report.text import fit
from rooflight.report.waits import waits
from rooflight.report.waterfall import waterfall
from rooflight.results.throughput import throughputs

_SOURCE = 160
_NOTHING = "Nothing was analysed: the document holds no rank."


@dataclass(frozen=True, slots=True)
class Options:
    """``rank`` is whose figures are shown (the first when ``None``), ``rate`` the price that
    money is reckoned with (that of the document when ``None``); without one no money is shown."""

    rank: int | None = None
    rate: Rate | None = None


DEFAULT = Options()


def report(document: Document, options: Options = DEFAULT) -> str:
    """The report as a whole HTML document.

    Raises :class:`~rooflight.errors.Refused` for a rank that the document lacks and
    :class:`~rooflight.errors.MissingExtra` when plotly is not installed.
    """
    title = f"Rooflight: {fit(document.source, _SOURCE)}"
    rank = _rank(document, options.rank)
    scripts = [plotly_js(), _asset("report.js")]
    body = tag("p", _NOTHING, cls="verdict") if rank is None else join(_sections(document, rank, options))
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", title),
            style(_asset("tokens.css")),
            style(_asset("report.css")),
        ]
    )
    page = tag("body", HATCH, tag("main", body, _made(), cls="page"), *map(script, scripts))
    return f"<!doctype html>\n{tag('html', tag('head', head), page, lang='en')}\n"


def _sections(document: Document, rank: Rank, options: Options) -> Iterator[Html]:
    s = summarise(rank)
    cost = money_of(document, options.rate)
    table, held = kernels(subject(rank)[0], s)
    yield _title(document, rank, s.times.n)
    yield headline(rank, s, cost, throughputs(document))
    left = tag(
        "div", waterfall(s, waits(rank, s), rank.percentiles_us), quality(document, rank, s), cls="c7 left"
    )
    yield tag("div", left, advice(rank, s, cost, held), cls="cols")
    yield chart(document, rank)
    yield table
    yield cuts(rank, s)
    yield communication(rank, s)
    yield ranks(document, rank)


def _title(document: Document, rank: Rank, steps: int) -> Html:
    facts = [counted(steps, "step"), f"rank {rank.rank}"]
    if document.world_size and document.world_size > 1:
        facts[1] += f" of {document.world_size:,}"
    if rank.host:
        facts.append(fit(rank.host, 80))
    line = tag("div", *(tag("span", f) for f in facts), cls="meta")
    return tag("header", tag("h1", fit(document.source, _SOURCE)), line)


def _rank(document: Document, wanted: int | None) -> Rank | None:
    if wanted is None:
        return document.ranks[0] if document.ranks else None
    found = next((r for r in document.ranks if r.rank == wanted), None)
    if found is None:
        raise Refused(f"rank {wanted} is not among the ranks that were analysed", hint="give another --rank")
    return found


def _policy(scripts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{d}'" for d in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


def _made() -> Html:
    return tag("p", f"Made by Rooflight {__version__}. This file loads nothing.", cls="small mute")


def _asset(name: str) -> str:
    return (resources.files("rooflight.report") / "assets" / name).read_text("utf-8")
