"""An analysis with its money: what the findings of each rank save at most, at a price that was given."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec.structs import replace

from rooflight.prices.money import Money, money
from rooflight.prices.rate import Rate
from rooflight.protocol import Document, Finding, Price, Rank, Saving
from rooflight.report.summary import Summary, counted, summarise
from rooflight.report.text import fit

#: Whoever wrote the document: nothing costs so much.
_MOST = 1e9
_SOURCE = 120


def priced(document: Document, rate: Rate | None) -> Document:
    """The document with the money of its findings; without a rate, or without a GPU, with none."""
    found = money(document, rate)
    ranks = [_rank(r, found) for r in document.ranks]
    return replace(document, ranks=ranks, price=None if found is None else _price(found))


def saved(us: float | None, s: Summary, m: Money) -> Saving:
    """What a time of the wall costs: of each hour of running, and in a thousand steps.

    Unknown is null, as is what a thousand steps cost where no steps are known.
    """
    if us is None:
        return Saving()
    return Saving(m.per_hour(us, s.wall_us), None if s.whole else m.per_1000_steps(us))


def in_words(found: Saving, m: Money) -> Iterator[str]:
    """The amounts that are known."""
    if found.per_hour is not None:
        yield f"{m.shown(found.per_hour)} per hour"
    if found.per_1000_steps is not None:
        yield f"{m.shown(found.per_1000_steps)} per 1,000 steps"


def price_line(m: Money) -> str:
    """What all money of a run rests on."""
    source = fit(m.rate.source, _SOURCE)
    return f"{m.shown(m.per_device_hour)} per GPU and hour ({source}), {counted(m.devices, 'GPU')}"


def cost_of(s: Summary, m: Money) -> list[str]:
    """What a thousand steps cost, and how much of each hour goes above the attainable time; as far as
    steps and bounds are known."""
    if s.whole or not s.wall_us:
        return []
    said = [f"{m.shown(m.per_1000_steps(s.wall_us))} per 1,000 steps"]
    if s.attainable_us is not None and s.attainable_pct is not None:
        lost = m.per_hour(max(0.0, s.wall_us - s.attainable_us), s.wall_us)
        said.append(f"{m.shown(lost)} of each hour above attainable")
    return said


def money_of(document: Document, rate: Rate | None = None) -> Money | None:
    """The money of a run at a rate, else at the price that the document was made with."""
    price = document.price
    if rate is not None or price is None:
        return money(document, rate)
    if not 0 < price.per_gpu_hour < _MOST or not price.devices:
        return None
    return Money(Rate(Decimal(repr(price.per_gpu_hour)), price.currency[:3], price.source), price.devices)


def together_us(rank: Rank) -> float | None:
    """The most that all findings of a rank save together: the time that they speak of, each instant once,
    and no more than the sum of their savings."""
    savings = [f.saving_us for f in rank.findings if f.saving_us is not None]
    if rank.findings_total_us is None or not savings:
        return None
    return min(rank.findings_total_us, sum(savings))


def _rank(rank: Rank, m: Money | None) -> Rank:
    if m is None:
        return replace(rank, findings=[replace(f, money=None) for f in rank.findings])
    s = summarise(rank)
    return replace(rank, findings=[_finding(f, s, m) for f in rank.findings])


def _finding(f: Finding, s: Summary, m: Money) -> Finding:
    return replace(f, money=None if f.saving_us is None else saved(f.saving_us, s, m))


def _price(m: Money) -> Price:
    return Price(m.per_device_hour, m.rate.currency, m.rate.source, m.devices)
