"""Where the wall time goes: from the wall down to the work, part by part, then each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rooflight.protocol import PARTS, CpuStep, Percentiles, Step
from rooflight.report.bars import INK, MEANING, NAMES, Piece, chip, draw, draw_upright, stack, swatch
from rooflight.report.markup import NB, Html, join, tag
from rooflight.report.summary import WATERFALL, Summary, counted, in_column, ms
from rooflight.report.text import fit
from rooflight.report.waits import NOTHING_OPEN, Wait

#: Over so many steps the bars stand side by side; over the second, the rest is counted.
ROWS_OF_STEPS = 24
MAX_STEPS = 400
_WHAT, _WHOLE = 120, 600
AnyStep = Step | CpuStep
_HOW = (
    "The wall time at the top loses what each line takes. Every instant belongs to one line only, so the"
    " lines add up to the wall time. Solid lines are work, hatched lines are waiting. The last line is what"
    " the work would take at the practical roofs of the device, with nothing waiting; work of unknown cost"
    " counts in full."
)


def waterfall(
    s: Summary, found: Sequence[Wait] = (), spread: Mapping[str, Percentiles] | None = None
) -> Html:
    """The panel, with what the device waited for and, on hover, how the parts are ``spread`` over the steps;
    says so where nothing tells where the time went."""
    if s.parts is None or not s.wall_us:
        return tag("section", tag("header", tag("h2", "Where the time goes")), _nothing(), cls="panel")
    steps = [x for x in s.steps if x.parts_us is not None]
    axis_us = max([s.wall_us, *(x.step_time_us for x in steps[:MAX_STEPS])])
    of = "whole recording" if s.whole else f"mean of {counted(s.times.n, s.step)}"
    of += f", {s.of_device}" if s.of_device else ""
    title = "Where the time goes" if s.whole else "Where the step goes"
    return tag(
        "section",
        tag("header", tag("h2", title), tag("p", of)),
        tag(
            "div",
            tag("div", *_rows(s, axis_us, spread or {}), *_steps(steps, axis_us, s), cls="wf"),
            cls="body",
        ),
        *_waits(found, s),
        tag("footer", tag("div", *_key(s, steps), cls="key"), how(_HOW)),
        cls="panel",
        id="time",
    )


def how(text: str) -> Html:
    """What to look for in a chart, folded away."""
    return tag("details", tag("summary", "How to read this"), tag("p", text), cls="how")


def _nothing() -> Html:
    return tag("p", "Nothing in this recording tells where its time went.", cls="block soft")


def _rows(s: Summary, axis_us: float, spread: Mapping[str, Percentiles]) -> Iterator[Html]:
    wall = Piece(INK, s.wall_us, 0, 100 * s.wall_us / axis_us)
    yield _row("wall", "Wall time", s.wall_us, s, [wall], "sum", "start to end")
    for p in stack(s.parts, axis_us, tuple(reversed(WATERFALL)))[::-1] if s.parts else []:
        yield _row(p.part, chip(p.part), p.us, s, [p], None, MEANING[p.part] + _spread(spread.get(p.part)))
    if s.attainable_us is not None:
        piece = Piece(INK, s.attainable_us, 0, 100 * s.attainable_us / axis_us)
        meaning = "all known work at its practical roof and nothing waiting; unknown work counts in full"
        yield _row("attainable", "Attainable", s.attainable_us, s, [piece], "sum", meaning)


def _spread(p: Percentiles | None) -> str:
    if p is None:
        return ""
    tails = "" if p.p95 is None else f", p95 {ms(p.p95)}, p99 {ms(p.p99)}"
    return f" Over the steps: p50 {ms(p.p50)}{tails}."


def _row(
    key: str, label: str, us: float, s: Summary, pieces: list[Piece], kind: str | None, meaning: str
) -> Html:
    return tag(
        "div",
        tag("span", label),
        tag("svg", draw(pieces, 8, 14), aria_hidden="true"),
        tag("span", in_column(us, s.decimals), cls="num"),
        tag("span", f"{100 * us / s.wall_us:.1f}{NB}%", cls="num mute"),
        cls=kind,
        title=meaning,
        data_part=key,
    )


def _steps(steps: Sequence[AnyStep], axis_us: float, s: Summary) -> Iterator[Html]:
    if not steps:
        return
    shown = steps[:MAX_STEPS]
    left = f", the first {len(shown):,} of {len(steps):,}" if len(shown) < len(steps) else ""
    yield tag("h3", f"Each {s.step}{left}", tag("span", f", 0 to {ms(axis_us)}", cls="mute"))
    if len(shown) > ROWS_OF_STEPS:
        yield tag("div", tag("ol", *(_column(x, axis_us) for x in shown)), cls="columns", tabindex=0,
                  role="region", aria_label="Steps")  # fmt: skip
        return
    for x in shown:
        yield tag(
            "div",
            tag("span", f"Step {x.n}", cls="soft"),
            tag("svg", draw(_pieces(x, axis_us), 5, 14), aria_hidden="true"),
            tag("span", f"{x.step_time_us / 1000:,.{s.decimals}f}", cls="num"),
            tag("span", _regime(x), cls="num mute"),
            cls="steps",
            data_step=x.n,
        )


def _waits(found: Sequence[Wait], s: Summary) -> Iterator[Html]:
    if not found:
        return
    head = (("Waits for", ""), (f"ms {s.unit}", "num"), ("Share", "num opt"), ("Open on the host", ""),
            ("Seen", "opt-l"))  # fmt: skip
    columns = (tag("th", label, scope="col", cls=cls or None) for label, cls in head)
    rows = (_wait(w, s) for w in found)
    table = tag("table", tag("thead", tag("tr", *columns)), tag("tbody", *rows), cls="grid")
    yield tag("div", table, cls="scroll", tabindex=0, role="region", aria_label="Table of waits", id="waits")


def _wait(w: Wait, s: Summary) -> Html:
    what = tag("span", fit(w.what, _WHAT), cls="mute" if w.what == NOTHING_OPEN else "mono")
    where = [tag("em", fit(w.where, _WHAT))] if w.where else []
    return tag(
        "tr",
        tag("td", chip(fit(w.cause, 40))),
        tag("td", in_column(w.us, s.decimals), cls="num"),
        tag("td", f"{w.share_pct:.1f}{NB}%", cls="num mute opt"),
        tag("td", what, *where, cls="kname", title=fit(f"{w.what} {w.where}".strip(), _WHOLE)),
        tag("td", w.seen, cls="opt-l"),
    )


def _column(x: AnyStep, axis_us: float) -> Html:
    said = f"Step {x.n}: {ms(x.step_time_us)}, {_regime(x)}"
    return tag(
        "li", tag("svg", draw_upright(_pieces(x, axis_us), 14), role="img", aria_label=said), title=said
    )


def _pieces(x: AnyStep, axis_us: float) -> list[Piece]:
    return stack(x.parts_us, axis_us, tuple(reversed(WATERFALL))) if x.parts_us else []


def _regime(x: AnyStep) -> str:
    return NAMES.get(x.regime, x.regime) if x.regime else "–"


def _key(s: Summary, steps: Sequence[AnyStep]) -> Iterator[Html]:
    walls = [s.parts, *(x.parts_us for x in steps[:MAX_STEPS])]
    for part in PARTS:
        if any(p is not None and getattr(p, part) > 0 for p in walls):
            yield tag("span", join([swatch(part), NAMES[part]]), cls="chip")
