"""What a run gets done in a second, from what somebody says that a step holds (docs/definitions.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from rooflight.bounded import UnitsPerStep
from rooflight.errors import Refused
from rooflight.prices.money import Money
from rooflight.protocol import CpuStep, Document, Rank, Step

_US_PER_S = 1_000_000
_S_PER_HOUR = 3_600
MILLION = 1_000_000
_SHOWN = 60
_HINT = "up to 16 names with what one rank's step holds, as tokens=8192"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Units per second of ``ranks`` recorded ranks, of ``world``, together; ``units`` are in each rank's
    step."""

    name: str
    units: float
    per_s: float
    ranks: int
    world: int

    @property
    def said(self) -> str:
        """As ``32,768 tokens/s``."""
        return f"{number(self.per_s)} {self.name}/s"

    @property
    def basis(self) -> str:
        """What it rests on: ``8,192 per step and rank, 2 of 8 ranks``."""
        which = f", {self.ranks:,} of {self.world:,} ranks" if self.world > self.ranks else ""
        return f"{number(self.units)} per step{' and rank' if self.world > 1 else ''}{which}"

    def per_million(self, money: Money) -> float:
        """What a million units cost: the GPUs of the recorded ranks, for as long as these take."""
        per_hour = money.per_device_hour * money.devices * self.ranks / self.world
        return per_hour / (self.per_s * _S_PER_HOUR) * MILLION

    def price(self, money: Money | None) -> str:
        """As ``$0.061 per million tokens``; "" without a price."""
        return "" if money is None else f"{money.shown(self.per_million(money))} per million {self.name}"

    def line(self, money: Money | None) -> str:
        """All of it in one line."""
        return ", ".join(text for text in (f"{self.said} ({self.basis})", self.price(money)) if text)


def throughputs(document: Document) -> list[Throughput]:
    """One for each name in ``units_per_step``; none unless every recorded rank has marked steps."""
    steps = [_step_us(rank) for rank in document.ranks]
    known = [us for us in steps if us]
    if not known or len(known) != len(steps):
        return []
    n, slowest_s = len(known), max(known) / _US_PER_S
    world = max(document.world_size or 0, n)
    return [Throughput(name, u, n * u / slowest_s, n, world) for name, u in document.units_per_step.items()]


def checked(units: Mapping[str, float]) -> dict[str, float]:
    """The units as a document holds them; :class:`Refused` for names or numbers that say nothing."""
    try:
        found: dict[str, float] = msgspec.convert(dict(units), UnitsPerStep)
    except (msgspec.ValidationError, TypeError, ValueError) as e:
        raise Refused(f"no units of a step: {e}", where=repr(units)[:_SHOWN], hint=_HINT) from e
    for name in found:
        if not name.isprintable() or name != name.strip():
            raise Refused("no name of a unit", where=repr(name), hint=_HINT)
    return found


def written(texts: Iterable[str]) -> dict[str, float]:
    """The units that are written ``tokens=8192``."""
    pairs = [text.partition("=") for text in texts]
    try:
        units = {name: float(value) for name, _, value in pairs}
    except ValueError as e:
        raise Refused(f"no units of a step: {e}", hint=_HINT) from e
    if len(units) != len(pairs):
        raise Refused("the same unit is given twice", hint=_HINT)
    return checked(units)


def joined(documents: Sequence[Document]) -> dict[str, float]:
    """Of documents that become one: what each rank's step holds, the mean over the ranks where it differs.
    What one of them does not say is unknown of the whole."""
    first, *others = documents
    names = [n for n in first.units_per_step if all(n in d.units_per_step for d in others)]
    return {name: _mean(name, documents) for name in names}


def number(value: float) -> str:
    """With three digits at least."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _mean(name: str, documents: Sequence[Document]) -> float:
    values = [d.units_per_step[name] for d in documents]
    if len(set(values)) == 1:
        return values[0]
    ranks = [len(d.ranks) for d in documents]
    return sum(v * n for v, n in zip(values, ranks, strict=True)) / sum(ranks)


def _step_us(rank: Rank) -> float | None:
    """The median of the marked steps; those of the CPU where no GPU worked."""
    on_cpu = rank.cpu is not None and not rank.devices
    steps: Sequence[Step | CpuStep] = rank.cpu.steps if on_cpu and rank.cpu else rank.steps
    return median(s.step_time_us for s in steps) if steps else None
