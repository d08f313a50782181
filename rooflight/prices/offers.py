"""Prices as a provider's file gives them, and what became of each row of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from rooflight.errors import TooLarge
from rooflight.prices.amount import NoAmount, shown, usd
from rooflight.prices.model import Instance

#: Prices of our instances that one file may hold: seventy instances in a hundred regions are 7,000.
MAX_OFFERS = 200_000
_REGION = re.compile(r"[\w .()/-]{0,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Offer:
    """A price of an instance in a region, ``where`` it stands in the file.

    ``spot``: it can be taken away, and is no price to reckon with; it only checks the other.  ``since`` is
    the day from which the price holds, as the file gives it, or empty.
    """

    instance: Instance
    region: str
    usd_per_hour: Decimal
    where: str
    spot: bool = False
    since: str = ""
    source: str = ""
    date: str = ""

    def __str__(self) -> str:
        place = f" {self.region}" if self.region else ""
        return f"{self.instance.name}{place} {self.usd_per_hour:f} ({self.where})"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A price that is not to be trusted, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(slots=True)
class Tally:
    """What a reader found.  Each row of the file is an offer, skipped, or rejected."""

    offers: list[Offer] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    rejected: list[Rejection] = field(default_factory=list)

    def skip(self, why: str) -> None:
        """Count a row that is none of those looked for."""
        self.skipped[why] += 1

    def reject(self, what: object, why: str) -> None:
        """Note a row that should be one of them, but cannot be right."""
        self._bounded(self.rejected)
        self.rejected.append(Rejection(str(what), why))

    def price(
        self,
        instance: Instance,
        region: str,
        amount: object,
        *,
        where: str,
        spot: bool = False,
        since: str = "",
        source: str = "",
        date: str = "",
    ) -> None:
        """Note a price, or that it is none."""
        what = f"{instance.name} {shown(region) if not _REGION.fullmatch(region) else region}".rstrip()
        if not _REGION.fullmatch(region):
            self.reject(f"{what} ({where})", "this is no region")
            return
        try:
            price = usd(amount, instance.gpu_count)
        except NoAmount as e:
            self.reject(f"{what} ({where})", str(e))
            return
        self._bounded(self.offers)
        self.offers.append(Offer(instance, region, price, where, spot, since, source, date))

    def _bounded(self, rows: list[Offer] | list[Rejection]) -> None:
        if len(rows) >= MAX_OFFERS:
            raise TooLarge(f"more than {MAX_OFFERS:,} prices of instances that we know")
