"""The findings of a rank: what was seen, what it would save at most, what to do, when it is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from rooflight.findings import Rule, all_rules
from rooflight.prices.money import Money
from rooflight.protocol import Evidence, Finding, Rank
from rooflight.report.bars import chip
from rooflight.report.markup import NB, Html, join, tag
from rooflight.report.money import in_words, saved, together_us
from rooflight.report.summary import Summary, ms, share_pct
from rooflight.report.text import fit

#: Hostile documents may hold thousands; ours hold at most a few per rule.
MAX_FINDINGS = 100
_MAX_EVIDENCE, _MAX_LINKS = 12, 6
#: So many explain themselves; the rest unfolds.
_OPEN = 3
_TEXT = 500


def advice(rank: Rank, s: Summary, money: Money | None, rows: Collection[int]) -> Html:
    """The panel; ``rows`` are the kernel rows that the page holds, which evidence links to."""
    rules = {r.code: r for r in all_rules()}
    shown = [
        _finding(i, f, rules.get(f.code), s, money, rows)
        for i, f in enumerate(rank.findings[:MAX_FINDINGS], start=1)
    ]
    quiet = f"at most {s.unit}; savings overlap and do not add{_together(rank, s, money)}"
    nothing = tag("p", "No rule found anything worth a line in this recording.", cls="block soft")
    return tag(
        "section",
        tag("header", tag("h2", "What to do first"), tag("p", quiet if shown else "")),
        *(shown or [nothing]),
        cls="panel c5",
        id="findings",
    )


def _together(rank: Rank, s: Summary, money: Money | None) -> str:
    """What all of them save at most, where that is known."""
    total = together_us(rank)
    if total is None:
        return ""
    cost = [] if money is None else in_words(saved(total, s, money), money)
    return f": {', '.join([f'together at most {ms(total)}', *cost])}"


def _finding(
    place: int, f: Finding, rule: Rule[Any] | None, s: Summary, money: Money | None, rows: Collection[int]
) -> Html:
    assumed = tag("p", tag("b", "If "), f"{fit(f.assumption, _TEXT)}.") if f.assumption else Html()
    seen = tag("ul", *(_evidence(e, rows) for e in f.evidence[:_MAX_EVIDENCE]))
    said = join([seen, assumed, tag("p", fit(f.fix, 2 * _TEXT), cls="fix"), *_more(f, rule)])
    folded = tag("details", tag("summary", "Evidence and fix"), said, cls="how")
    return tag(
        "article",
        tag("span", str(place), cls="rank num"),
        tag("h3", fit(f.title, _TEXT)),
        _saving(f, s, money),
        tag("div", said if place <= _OPEN else folded, cls="said"),
        cls="finding",
        data_code=fit(f.code, 80),
    )


def _saving(f: Finding, s: Summary, money: Money | None) -> Html:
    if f.saving_us is None:
        return tag("div", tag("b", "–", title="nothing tells how much"), cls="save")
    share = share_pct(f, s)
    said = [] if share is None else [f"{share:.1f}{NB}%"]
    if money is not None:
        said += in_words(saved(f.saving_us, s, money), money)
    saving = tag("b", ms(f.saving_us).replace(" ", NB))
    return tag("div", saving, tag("span", ", ".join(said), cls="small"), cls="save")


def _evidence(e: Evidence, rows: Collection[int]) -> Html:
    here = [i for i in e.kernels if i in rows][:_MAX_LINKS]
    links = (tag("a", f"row {n}" if len(here) > 1 else "row", href=f"#k{i}") for n, i in enumerate(here, 1))
    steps = f" (step{'s' * (len(e.steps) > 1)} {', '.join(map(str, e.steps[:8]))})" if e.steps else ""
    return tag("li", f"{fit(e.text, _TEXT)}{steps} ", *(tag("span", x, " ") for x in links))


def _more(f: Finding, rule: Rule[Any] | None) -> Iterator[Html]:
    foot = [*([chip(f.regime)] if f.regime else []), tag("span", fit(f.code, 80), cls="mute")]
    if rule is None:
        yield tag("div", *foot, cls="more")
        return
    yield tag(
        "div",
        *foot,
        tag(
            "details",
            tag("summary", "Why it costs, and when this is wrong"),
            tag("p", rule.why),
            tag("p", tag("b", "False alarms. "), rule.false_alarms),
            cls="how",
        ),
        cls="more",
    )
