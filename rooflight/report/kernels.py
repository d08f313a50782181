"""The kernel table: the groups with most time, and what the rest comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rooflight.figures.points import REASONS, reason_absent
from rooflight.metrics import METRICS
from rooflight.protocol import Kernel
from rooflight.report.bars import chip, meter
from rooflight.report.markup import NB, Html, join, tag
from rooflight.report.summary import Summary, because, counted, rate, title
from rooflight.report.text import fit

TOP_ROWS = 200
_NAME, _FULL = 120, 600
_DASH = "–"


@dataclass(frozen=True, slots=True)
class _Column:
    """``cls``: ``opt`` is hidden on phones, ``opt-l`` under 1100 px."""

    label: str
    meaning: str
    cls: str = "num"


def kernels(rows: Sequence[Kernel], s: Summary) -> tuple[Html, frozenset[int]]:
    """The panel, and the places (in ``rows``) of the groups that it holds."""
    order = sorted(range(len(rows)), key=lambda i: -rows[i].time_us)
    shown, rest = order[:TOP_ROWS], [rows[i] for i in order[TOP_ROWS:]]
    what = "Ops" if s.on_cpu else "Kernels"
    calls = counted(sum(k.count for k in rows), "call")
    hint = "Filter by name, op or regime"
    field = tag("input", type="search", id="filter", placeholder=hint, autocomplete="off")
    search = tag("label", tag("span", hint, cls="sr"), field, cls="search push")
    body = _table([(i, rows[i]) for i in shown], s) if shown else tag("p", "None was recorded.", cls="block")
    panel = tag(
        "section",
        tag("header", tag("h2", what), tag("p", f"{counted(len(rows), 'group')}, {calls}"), search),
        body,
        tag("footer", *_foot(rest, s)),
        cls="panel",
        id="kernels",
    )
    return panel, frozenset(shown)


def _table(rows: list[tuple[int, Kernel]], s: Summary) -> Html:
    longest = max(k.time_us for _, k in rows)
    head = (tag("th", c.label, cls=c.cls, title=c.meaning, scope="col") for c in _columns(s))
    body = (_row(i, k, longest, s) for i, k in rows)
    grid = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), cls="grid")
    return tag("div", grid, cls="scroll tall", tabindex=0, role="region", aria_label="Table of kernel groups")


def _columns(s: Summary) -> Iterator[_Column]:
    def figure(field: str, label: str, cls: str = "num") -> _Column:
        return _Column(label, METRICS[f"kernel.{field}"].explanation, cls)

    per = "" if s.kernel_steps == 1 else " / step"
    yield _Column("Op" if s.on_cpu else "Kernel", "The short name; the full one on hover.", "")
    yield _Column("Bound by", "What bounds the group, decided from its median launch.", "")
    yield figure("time_us", f"ms{per}")
    yield figure("share_pct", "Share", "num opt")
    yield figure("count", "Calls", "num opt")
    yield figure("p50_us", "p50 µs", "num opt-l")
    yield figure("p99_us", "p99 µs", "num opt-l")
    yield figure("achieved_tflops", "GFLOP/s" if s.on_cpu else "TFLOP/s", "num opt-l")
    yield figure("achieved_gbs", "GB/s", "num opt-l")
    yield figure("ai", "FLOP/B", "num opt-l")
    yield figure("roof_fraction", "Of roof")
    yield _Column("Cost", "Where FLOPs and bytes come from.", "opt-l")


def _row(i: int, k: Kernel, longest: float, s: Summary) -> Html:
    time = f"{k.time_us / 1000 / s.kernel_steps:,.3f}"
    why = fit(k.cost_reason or "FLOPs or bytes are not known", _NAME)
    return tag(
        "tr",
        tag("td", *_name(k, s), cls="kname", title=fit(k.name, _FULL)),
        tag("td", chip(fit(k.regime, 40)), *_reason(k), cls="why", title=_why(k) or None),
        tag("td", tag("div", meter(100 * k.time_us / longest if longest else 0.0, k.regime),
                      tag("span", time, cls="v"), cls="withbar"), cls="num"),
        _cell(None if k.share_pct is None else f"{k.share_pct:.1f}{NB}%", "no kernel time", "opt"),
        _cell(f"{k.count:,}", "", "opt"),
        _cell(_micro(k.p50_us), "too few launches", "opt-l"),
        _cell(_micro(k.p99_us), "too few launches", "opt-l"),
        _cell(rate(k.achieved_tflops, on_cpu=s.on_cpu), why, "opt-l"),
        _cell(None if k.achieved_gbs is None else f"{k.achieved_gbs:,.{int(s.on_cpu)}f}", why, "opt-l"),
        _cell(None if k.ai is None else f"{k.ai:,.3g}" if k.ai < 1000 else f"{k.ai:,.0f}", why, "opt-l"),
        _cell(_roof(k), _no_roof(k, why)),
        tag("td", fit(k.origin, 40), cls="opt-l", title=fit(k.cost_reason, _FULL) or None),
        id=f"k{i}",
    )  # fmt: skip


def _name(k: Kernel, s: Summary) -> Iterator[Html]:
    yield tag("span", fit(title(k), _NAME), cls="mono")
    if not s.on_cpu:
        dims = f" {k.input_dims}" if k.op and k.input_dims else ""
        yield tag("em", fit(f"{k.op or 'no op'}{dims}", _NAME))


def _reason(k: Kernel) -> Iterator[Html]:
    if k.reason:
        yield tag("span", f" {_why(k)}", cls="mute opt-l")


def _why(k: Kernel) -> str:
    return fit(because(k), 200)


def _cell(text: str | None, why: str, cls: str = "") -> Html:
    classes = f"num {cls}".strip()
    if text is None or text == _DASH:
        return tag("td", tag("span", _DASH, cls="mute", title=why or None), cls=classes)
    return tag("td", text, cls=classes)


def _micro(us: float | None) -> str | None:
    return None if us is None else f"{us:,.1f}" if us < 100 else f"{us:,.0f}"


def _roof(k: Kernel) -> str | None:
    # A bound of 0 is none: no work was counted that a known roof limits.
    if not k.roof_fraction:
        return None
    above = tag("span", "above", cls="tag warn", title="faster than the datasheet allows, shown as measured")
    return join([above if k.above_peak else "", f" {100 * k.roof_fraction:,.0f}{NB}%"])


def _no_roof(k: Kernel, why: str) -> str:
    reason = reason_absent(k)
    return REASONS[reason] if reason else "no roof is known for its dtype" if k.flops is not None else why


def _foot(rest: list[Kernel], s: Summary) -> Iterator[Html]:
    if rest:
        left = sum(k.time_us for k in rest) / 1000 / s.kernel_steps
        per = "" if s.kernel_steps == 1 else " per step"
        calls = counted(sum(k.count for k in rest), "call")
        yield tag(
            "span", f"Not shown: {counted(len(rest), 'group', 'more ')} with {left:,.3f} ms{per}, {calls}."
        )
    if s.kernel_steps > 1:
        yield tag(
            "span", f"ms / step: time over the whole recording, divided by its {s.kernel_steps:,} steps."
        )
    yield tag("span", "p50 and p99 are per launch.")
