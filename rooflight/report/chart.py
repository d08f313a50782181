"""The roofline chart: the figure of :mod:`rooflight.figures`, and what has no place on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rooflight.figures.ceilings import plausible
from rooflight.figures.points import rate
from rooflight.figures.roofline import roofline, subject
from rooflight.protocol import Ceiling, Document, Kernel, Rank, Roofs
from rooflight.report.bars import chip
from rooflight.report.markup import Html, data, join, tag
from rooflight.report.summary import counted
from rooflight.report.text import fit
from rooflight.report.waterfall import how

_HOW = (
    "Height is speed; left to right is work per byte moved. Under the slanted roof memory is the limit, under"
    " a flat one arithmetic; far below both, neither is busy. Area is time, colour is what bounds the group,"
    " the symbol tells where its cost comes from. Click a point to find its row in the table."
)
_SYMBOLS = {"measured": "□", "modelled": "○", "inferred": "◇"}
_SOURCES = {
    "measured": "measured on this device",
    "factor": "known factor of this model",
    "family": "usual factor of this family",
    "assumed": "assumed factor",
}


def chart(document: Document, rank: Rank) -> Html:
    """The panel with the figure as data, for the page's script to draw."""
    figure = roofline(document, rank.rank)
    meta = figure["layout"]["meta"]
    rows, roofs = subject(rank)
    roofs = plausible(roofs)
    label = f"Roofline chart of {meta['n_plotted']} groups; the same numbers are in the table below"
    drawn = tag("figure", cls="plot", id="plot", role="img", aria_label=label)
    quiet = f"{meta['n_plotted']:,} of {counted(meta['n_groups'], 'group')}; area is time"
    return tag(
        "section",
        tag("header", tag("h2", "Roofline"), tag("p", quiet), tag("div", *_key(figure), cls="key push")),
        tag("div", drawn, tag("aside", *_aside(meta, rows, roofs)), cls="split"),
        data(figure, "figure"),
        cls="panel",
        id="roofline",
    )


def _key(figure: dict[str, Any]) -> Iterator[Html]:
    points = [t for t in figure["data"] if t["meta"]["role"] == "points"]
    yield from (chip(fit(t["meta"]["regime"], 40)) for t in points)
    symbols = {s for t in points for s in t["marker"]["symbol"]}
    for symbol, origin in (("square", "measured"), ("circle", "modelled"), ("diamond", "inferred")):
        if symbol in symbols:
            yield tag("span", f"{_SYMBOLS[origin]} {origin}", cls="chip")
    yield tag("span", "thick: practical, thin: datasheet", cls="chip")


def _aside(meta: dict[str, Any], rows: list[Kernel], roofs: Roofs) -> Iterator[Html]:
    yield _facts("Roofs, practical of datasheet", list(_roofs(roofs))) or tag(
        "div", tag("h3", "No roof"), tag("p", _no_roof(roofs), cls="small soft")
    )
    absent = [(x["text"], counted(x["count"], "group")) for x in meta["not_plotted"]]
    if meta["below_frame"]:
        absent.append(("too slow and short: below the frame", counted(meta["below_frame"], "group")))
    yield _facts("Not on the chart", absent) or tag("p", "Every group has its place.", cls="small soft")
    above = sum(k.above_peak for k in rows)
    if above:
        said = (
            f"{counted(above, 'group')}, shown as measured: fewer operations ran than the shapes tell"
            " (Winograd does that), part of the data lay in a cache, or the roof of another type applies."
        )
        yield tag("div", tag("h3", "Above the datasheet roof"), tag("p", said, cls="small soft"))
    yield how(_HOW)


def _facts(title: str, facts: list[tuple[str, str]]) -> Html:
    """A list of facts under a heading; empty when there are none."""
    if not facts:
        return Html()
    rows = join(join([tag("dt", name), tag("dd", value)]) for name, value in facts)
    return tag("div", tag("h3", title), tag("dl", rows, cls="facts"))


def _roofs(roofs: Roofs) -> Iterator[tuple[str, str]]:
    compute = {**roofs.vector, **roofs.compute}
    for name, c, unit in (
        *((name, c, "FLOP/s") for name, c in list(compute.items())[:16]),
        ("memory", roofs.memory, "B/s"),
        ("link", roofs.link, "B/s"),
    ):
        if c is not None and (c.practical or c.datasheet):
            yield fit(name, 40), _ceiling(c, unit)


def _ceiling(c: Ceiling, unit: str) -> str:
    both = [f"{rate(v)}{unit}" for v in (c.practical, c.datasheet) if v]
    return f"{' of '.join(both)}, {_SOURCES.get(c.origin, fit(c.origin, 40))}"


def _no_roof(roofs: Roofs) -> str:
    if roofs.kind == "cpu":
        return (
            "Measure this CPU (rooflight-agent calibrate --out roofs.json) and give --calibration roofs.json."
        )
    return "The device is not in the catalogue, or the recording does not name it (--gpu NAME does)."
