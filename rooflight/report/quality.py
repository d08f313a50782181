"""What the numbers rest on: the grade and its reasons, where costs come from, flags, what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.protocol import ORIGINS, Coverage, Document, Flag, Rank
from rooflight.report.markup import NB, Html, join, tag
from rooflight.report.summary import Summary, counted
from rooflight.report.text import fit

_TOP = 40
_TEXT = 500
_ORIGINS = {
    "measured": "hardware counters",
    "modelled": "from shapes and types",
    "inferred": "from names and grids",
    "unknown": "no cost is known",
}


def quality(document: Document, rank: Rank, s: Summary) -> Html:
    """The panel."""
    return tag(
        "section",
        tag("header", tag("h2", "What the numbers rest on")),
        tag("div", *_blocks(document, rank, s), cls="blocks"),
        cls="panel",
        id="quality",
    )


def _blocks(document: Document, rank: Rank, s: Summary) -> Iterator[Html]:
    reasons = rank.grade_reasons[:_TOP] or ["nothing is missing"]
    yield _block(f"Data: {fit(rank.grade, 40)}", tag("ul", *(tag("li", fit(r, _TEXT)) for r in reasons)))
    if s.kernels and rank.coverage != Coverage():
        what = "op" if s.on_cpu else "kernel"
        facts = [(f"{o}, {_ORIGINS[o]}", f"{getattr(rank.coverage, o):.0f}{NB}%") for o in ORIGINS]
        yield _block(f"Costs by share of {what} time", _facts(facts))
    flags = [*rank.flags, *document.flags]
    if flags:
        yield _block(f"{counted(len(flags), 'flag').capitalize()}", tag("ul", *map(_flag, flags[:_TOP])))
    if rank.invalid_events:
        left_out = [(fit(k, 80).replace("_", " "), f"{n:,}") for k, n in rank.invalid_events.items()][:_TOP]
        yield _block("Events left out", _facts(left_out))
    if rank.software:
        yield _block("Software", _facts([(fit(k, 80), fit(v, 120)) for k, v in rank.software.items()][:_TOP]))


def _block(title: str, body: Html) -> Html:
    return tag("div", tag("h3", title), body, cls="block")


def _flag(flag: Flag) -> Html:
    count = "" if flag.count is None else f" ({flag.count:,})"
    return tag("li", tag("b", fit(flag.code, 80)), f"{count} {fit(flag.detail, _TEXT)}")


def _facts(facts: list[tuple[str, str]]) -> Html:
    return tag("dl", join(join([tag("dt", k), tag("dd", v)]) for k, v in facts), cls="facts")
