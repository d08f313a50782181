"""Communication: the collectives by kind, how fast they were, and which kernels suffer beside them."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.collectives import Communication, Contention
from rooflight.protocol import Rank
from rooflight.report.collectives import TOP_COLLECTIVES, bandwidth, collective, of_link, slowed, slower
from rooflight.report.markup import NB, Html, tag
from rooflight.report.summary import Summary, counted, title
from rooflight.report.text import fit

_DASH = "–"
_NAME, _WHY = 160, 300


def communication(rank: Rank, s: Summary) -> Html:
    """The panel; nothing for a rank that does not communicate."""
    rows = rank.communication
    if not rows:
        return Html()
    kinds = counted(rank.communication_rows, "kind")
    calls = counted(sum(r.count for r in rows), "call")
    head = (tag("th", label, scope="col", cls=cls or None, title=why or None) for label, cls, why in _head(s))
    body = (_row(r, s) for r in rows[:TOP_COLLECTIVES])
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), cls="grid")
    return tag(
        "section",
        tag("header", tag("h2", "Communication"), tag("p", f"{kinds}, {calls}")),
        tag("div", table, cls="scroll tall", tabindex=0, role="region", aria_label="Table of collectives"),
        tag("footer", *_foot(rank)),
        cls="panel",
        id="communication",
    )


def _head(s: Summary) -> Iterator[tuple[str, str, str]]:
    yield "Collective", "", "Kind, number type, message of one and ranks of the group."
    yield ("ms" if s.kernel_steps == 1 else "ms / step"), "num", "Time of the kernels, waiting included."
    yield "Exposed", "num", "Share of that time in which nothing but communication runs."
    yield "Wait", "num opt", "Until the last rank had arrived, in ms; known with several ranks."
    yield "Calls", "num opt", ""
    yield "GB/s", "num", "Bus bandwidth: comparable with the link whatever the collective."
    yield "Of link", "num", "Bus bandwidth over the practical roof of the link."


def _row(r: Communication, s: Summary) -> Html:
    wait = _DASH if r.wait_us is None else f"{r.wait_us / 1000 / s.kernel_steps:,.3f}"
    exposed = _DASH if r.exposed_pct is None else f"{r.exposed_pct:.0f}{NB}%"
    why = fit(r.reason, _WHY) or None
    return tag(
        "tr",
        tag(
            "td",
            tag("span", fit(collective(r), _NAME), cls="mono"),
            tag("em", fit(r.group, _NAME)),
            cls="kname",
        ),
        tag("td", f"{r.time_us / 1000 / s.kernel_steps:,.3f}", cls="num"),
        tag("td", exposed, cls="num"),
        tag("td", wait, cls="num opt"),
        tag("td", f"{r.count:,}", cls="num opt"),
        tag("td", bandwidth(r), cls="num", title=why),
        tag("td", of_link(r), cls="num", title=why),
    )


def _foot(rank: Rank) -> Iterator[Html]:
    left = rank.communication_rows - min(len(rank.communication), TOP_COLLECTIVES)
    if left > 0:
        yield tag("span", f"and {counted(left, 'more kind')}.")
    if any(r.bus_gbs is not None and r.basis != "transfer" for r in rank.communication[:TOP_COLLECTIVES]):
        yield tag(
            "span", "≥: a lower bound, since a kernel's own time holds waiting for ranks that are not here."
        )
    for c in slowed(rank.contention):
        yield from _slower(rank, c)


def _slower(rank: Rank, c: Contention) -> Iterator[Html]:
    if c.kernel < len(rank.kernels):
        name = fit(title(rank.kernels[c.kernel]), _NAME)
        yield tag("span", f"Beside communication {name} takes {slower(c)}.")
