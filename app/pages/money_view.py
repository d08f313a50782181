"""The money of the Run page: the price that was chosen, and what each finding saves at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.advice.price import Pricing
from app.pages.run_view import RunView
from rooflight.errors import Refused
from rooflight.prices import Instance, Wanted, meant, price_per_gpu_hour, selected
from rooflight.prices.money import Money, amount, money
from rooflight.protocol import Document
from rooflight.report.money import in_words, price_line, saved, together_us
from rooflight.report.summary import Summary, summarise

#: A select with more is no help: `rooflight gpus instances` lists them all.
MAX_OPTIONS = 60


@dataclass(frozen=True, slots=True)
class Option:
    """An instance that may be chosen; none is before somebody does."""

    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class MoneyView:
    """``rate`` says what the money rests on, "" without a price; ``findings`` are the amounts of each, in
    words; ``excess`` what is above attainable costs; ``problem`` why there is no money at what was asked;
    ``units`` what a million of each unit costs."""

    price: str
    options: list[Option]
    rate: str
    problem: str
    findings: list[list[str]]
    excess: str
    together: str
    together_us: float | None
    units: list[str]


def money_view(document: Document, v: RunView, asked: Pricing) -> MoneyView:
    """What the page shows of money; a price that cannot be is said beside the form."""
    try:
        rate, problem = asked.rate(), ""
    except Refused as e:
        rate, problem = None, f"{e.title[:1].upper()}{e.title[1:]}."
    found, s, total = money(document, rate), summarise(v.rank), together_us(v.rank)
    return MoneyView(
        price=asked.price or "",
        options=list(_options(v, asked)),
        rate="" if found is None else price_line(found),
        problem=problem or ("No GPU was recorded: there is nothing to price." if rate and not found else ""),
        findings=[_words(f.saving_us, s, found) for f in v.findings],
        excess=_excess(v, found),
        together=", ".join(_words(total, s, found)),
        together_us=total if len(v.findings) > 1 else None,
        units=[speed.price(found) for speed in v.throughputs],
    )


def _words(us: float | None, s: Summary, m: Money | None) -> list[str]:
    return [] if m is None or us is None else list(in_words(saved(us, s, m), m))


def _excess(v: RunView, m: Money | None) -> str:
    """What the wall time above the attainable one costs, where that says something."""
    if m is None or v.attainable_us is None:
        return ""
    lost = m.per_hour(max(0.0, v.wall_us - v.attainable_us), v.wall_us)
    return "" if lost is None else f"{m.shown(lost)} per hour"


def _options(v: RunView, asked: Pricing) -> Iterator[Option]:
    """The instances with this run's GPU that have a price, cheapest GPU hour first."""
    return iter(()) if v.cpu else options_of(asked.listed, v.device_name, asked.instance)


def options_of(listed: Sequence[Instance], gpu: str | None, chosen: str | None) -> Iterator[Option]:
    """The instances with a GPU that have a price, cheapest GPU hour first."""
    found = selected(listed, Wanted(meant(gpu))) if gpu else []
    priced = [i for i in found if price_per_gpu_hour(i) is not None]
    for i in priced[:MAX_OPTIONS]:
        value = f"{i.name}@{i.region}" if i.region else i.name
        yield Option(value, _label(i), value == chosen)


def _label(i: Instance) -> str:
    price = price_per_gpu_hour(i)
    per_hour = amount(None if price is None else float(price))
    return f"{' '.join(t for t in (i.provider, i.name, i.region) if t)}, {per_hour} per GPU"
