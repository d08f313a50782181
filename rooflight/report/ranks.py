"""The ranks of a run side by side: who is bound by what, and who kept the others waiting."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.protocol import Document, Rank
from rooflight.report.bars import chip, draw, stack
from rooflight.report.markup import NB, Html, tag
from rooflight.report.stragglers import Stragglers, stragglers
from rooflight.report.summary import WATERFALL, Summary, counted, missing, ms, summarise
from rooflight.report.text import fit

TOP_RANKS = 256


def ranks(document: Document, chosen: Rank) -> Html:
    """The panel; nothing for a run of one rank of which none is missing."""
    absent = missing(document)
    if len(document.ranks) < 2 and not absent:
        return Html()
    late = stragglers(document)
    shown = [(r, summarise(r)) for r in document.ranks[:TOP_RANKS]]
    longest = max((s.wall_us for _, s in shown), default=0.0)
    rows = (_row(r, s, longest, late, r is chosen) for r, s in shown)
    world = f" of {document.world_size:,}" if document.world_size else ""
    quiet = f"{len(document.ranks):,}{world}{f'; missing: {absent}' if absent else ''}"
    table = tag("table", tag("thead", tag("tr", *_head())), tag("tbody", *rows), cls="grid")
    return tag(
        "section",
        tag("header", tag("h2", "Ranks"), tag("p", quiet)),
        tag("div", table, cls="scroll tall", tabindex=0, role="region", aria_label="Table of ranks"),
        tag("footer", *_foot(document, chosen, late)),
        cls="panel",
        id="ranks",
    )


def _head() -> Iterator[Html]:
    for label, cls in (("Rank", ""), ("Bound by", ""), ("Mean step", "stackcell"), ("Step p50", "num"),
                       ("Late", "num opt"), ("Waited for", "num opt"), ("Data", "opt")):  # fmt: skip
        yield tag("th", label, scope="col", cls=cls or None)


def _row(rank: Rank, s: Summary, longest: float, late: Stragglers, chosen: bool) -> Html:
    pieces = stack(s.parts, longest, tuple(reversed(WATERFALL))) if s.parts else []
    times = f"{late.times.get(rank.rank, 0):,}" if late.known else "–"
    cost = ms(late.caused_us.get(rank.rank, 0.0) if late.known else None)
    why = tag("span", "–", cls="mute", title=fit(s.reason, 300) or None)
    return tag(
        "tr",
        tag("td", f"Rank {rank.rank}"),
        tag("td", chip(fit(s.regime, 40)) if s.regime else why),
        tag("td", tag("svg", draw(pieces, 0, 10), cls="stack", aria_hidden="true"), cls="stackcell"),
        tag("td", ms(s.times.p50_us), cls="num"),
        tag("td", times, cls="num opt"),
        tag("td", cost, cls="num opt"),
        tag("td", fit(rank.grade, 40), cls="opt"),
        aria_selected="true" if chosen else None,
    )


def _foot(document: Document, chosen: Rank, late: Stragglers) -> Iterator[Html]:
    if len(document.ranks) > TOP_RANKS:
        yield tag("span", f"and {len(document.ranks) - TOP_RANKS:,} more.")
    if late.known:
        often = f"Late: how often it came last of {counted(late.known, 'collective')}"
        yield tag("span", f"{often}; waited for: how long the others waited for it then, added up over them.")
    if late.wait_us is not None and late.step_us:
        share = f"{100 * late.wait_us / late.step_us:.0f}{NB}%"
        yield tag("span", f"Idle until the last rank arrives: {ms(late.wait_us)} per step ({share}).")
    yield tag("span", f"The other sections are those of rank {chosen.rank}.")
