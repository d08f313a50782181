"""What a reader sees first: the verdict in a sentence, and a strip of the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflight.prices.money import Money
from rooflight.protocol import REGIMES, Coverage, Rank
from rooflight.report.bars import chip, meter, swatch
from rooflight.report.markup import NB, Html, join, tag
from rooflight.report.money import cost_of, price_line
from rooflight.report.summary import Summary, counted, first_step, group_us, ms, utilisation, verdict
from rooflight.report.text import fit
from rooflight.results.energy import energy_in_words
from rooflight.results.throughput import Throughput

_DASH = "–"
_REASON = 300
_SPEEDS = 3


def headline(rank: Rank, s: Summary, money: Money | None, speeds: Sequence[Throughput] = ()) -> Html:
    """Verdict, first thing to do, strip."""
    return join([_verdict(s), _strip(rank, s, money, speeds)])


def _verdict(s: Summary) -> Html:
    lead, colon, rest = fit(verdict(s), 2 * _REASON).partition(":")
    sentence = [tag("b", f"{lead}{colon}"), f"{rest} ", tag("span", first_step(s))]
    return tag("p", swatch(s.regime or "unknown"), tag("span", *sentence), cls="verdict")


def _strip(rank: Rank, s: Summary, money: Money | None, speeds: Sequence[Throughput]) -> Html:
    cells = [
        _regime(s),
        _step_time(s, _more(rank, speeds, money)),
        _attainable(s),
        _data(rank),
        _device(rank, s),
    ]
    cells.append(_costed(rank.coverage, s) if money is None else _money(s, money))
    return tag("dl", *cells, cls="strip", aria_label="Headline")


def _cell(label: str, value: str, *below: str, cls: str | None = None, title: str | None = None) -> Html:
    lines = (tag("dd", b, cls="sub") for b in below if b)
    return tag("div", tag("dt", label), tag("dd", value, cls=cls), *lines, title=title)


def _regime(s: Summary) -> Html:
    if s.regime is None:
        return _cell("Bound by", _DASH, fit(s.reason or "nothing to judge", _REASON))
    sure = f"{fit(s.confidence, 40)} confidence" if s.confidence else ""
    decided = fit(s.reason, _REASON) or None
    return _cell("Bound by", chip(s.regime), sure, ", ".join(_shares(s)), title=decided)


def _shares(s: Summary) -> Iterator[str]:
    """The share of the wall time that the regime takes, and the largest of the others."""
    if s.parts is None or not s.wall_us or s.regime not in REGIMES:
        return
    spent = {r: group_us(s.parts, r) for r in REGIMES}
    yield f"{100 * spent.pop(s.regime) / s.wall_us:.0f}{NB}% of the wall time"
    second = max(spent, key=lambda r: spent[r])
    yield f"{second} {100 * spent[second] / s.wall_us:.0f}{NB}%"


def _more(rank: Rank, speeds: Sequence[Throughput], money: Money | None) -> Iterator[str]:
    yield from _speeds(speeds, money)
    if rank.energy is not None:
        yield fit(f"energy {energy_in_words(rank.energy)}", _REASON)


def _speeds(speeds: Sequence[Throughput], money: Money | None) -> Iterator[str]:
    for speed in speeds[:_SPEEDS]:
        yield fit(f"{speed.said} ({speed.basis})", _REASON)
        yield fit(speed.price(money), _REASON)


def _step_time(s: Summary, more: Iterator[str]) -> Html:
    t = s.times
    if not t.n:
        recorded = f"{ms(s.wall_us)} recorded" if s.wall_us else ""
        return _cell("Step time", _DASH, recorded, "no steps are known")
    trio = tag("span", *_percentiles(s), cls="trio")
    few = "too few steps for tails" if t.p95_us is None else ""
    return _cell("Step time", trio, counted(t.n, s.step), few, *more)


def _percentiles(s: Summary) -> Iterator[Html]:
    t = s.times
    for name, value in (("p50", t.p50_us), ("p95", t.p95_us), ("p99", t.p99_us)):
        yield tag("span", tag("b", ms(value).replace(" ", NB), data_figure=name), tag("i", name))


def _attainable(s: Summary) -> Html:
    unknown = s.unbounded_pct or 0.0
    if s.attainable_pct is None:
        why = f"the bound of {unknown:.0f}{NB}% of the work is unknown"
        return _cell(
            "Of attainable", _DASH, "needs steps, costs and roofs" if s.attainable_us is None else why
        )
    value = join([f"{s.attainable_pct:.0f}", tag("span", "%", cls="unit")])
    of = f"{ms(s.attainable_us)} of {ms(s.wall_us)} {s.unit}"
    full = f"{unknown:.0f}{NB}% of the work has no known bound and counts in full" if unknown >= 1 else ""
    return _cell("Of attainable", value, of, meter(s.attainable_pct), full)


def _data(rank: Rank) -> Html:
    reasons = rank.grade_reasons or ["nothing is missing"]
    more = f"and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return _cell("Data", fit(rank.grade, 40).capitalize(), fit(reasons[0], _REASON), more)


def _device(rank: Rank, s: Summary) -> Html:
    roofs = rank.cpu.roof if s.on_cpu and rank.cpu else rank.roofs.get(rank.headline or "")
    known = roofs is not None and (roofs.compute or roofs.vector or roofs.memory)
    below = (
        f"roofs of {fit(roofs.name or 'this device', 80)}" if roofs and known else "no roof is known for it"
    )
    return _cell(
        "CPU" if s.on_cpu else "Device",
        fit(s.device, 120),
        below,
        utilisation(s).replace(" %", f"{NB}%"),
        cls="device",
    )


def _costed(c: Coverage, s: Summary) -> Html:
    if not s.kernels or c == Coverage():
        return _cell("Time costed", _DASH, "no work was recorded")
    parts = {"measured": c.measured, "modelled": c.modelled, "inferred": c.inferred}
    said = ", ".join(f"{pct:.0f}{NB}% {name}" for name, pct in parts.items() if pct >= 0.5)
    value = join([f"{100 - c.unknown:.0f}", tag("span", "%", cls="unit")])
    return _cell("Time costed", value, said or "no cost is known")


def _money(s: Summary, m: Money) -> Html:
    price, said = price_line(m), cost_of(s, m)
    if not said:
        return _cell("Per 1,000 steps", _DASH, "no steps are known", price)
    value = m.shown(m.per_1000_steps(s.wall_us))
    gap = "; ".join(said[1:])
    return _cell("Per 1,000 steps", tag("span", value, data_figure="money"), price, gap)
