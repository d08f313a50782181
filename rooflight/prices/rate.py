"""What a GPU costs an hour, as it was asked for: an amount, or an instance of a list.

Nothing is guessed: an instance that several regions or providers price differently is refused until it is
said which is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from rooflight.errors import Refused
from rooflight.prices.amount import NoAmount, usd
from rooflight.prices.listing import find_instances
from rooflight.prices.model import Instance, price_per_gpu_hour

USD = "USD"
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_PER_HOUR = ("/h", "/hour")
_SHOWN, _PLACES = 60, 8


@dataclass(frozen=True, slots=True)
class Rate:
    """The price of one GPU for one hour, in ``currency`` (ISO 4217), and where it is from."""

    per_gpu_hour: Decimal
    currency: str = USD
    source: str = "as given"


def rate_given(text: str, currency: str | None = None) -> Rate:
    """The rate that somebody wrote: ``3.60`` or ``3.60/h``; ``currency`` names its unit, it is not changed.

    Raises :class:`~rooflight.errors.Refused` for anything but a plain positive amount.
    """
    unit = (currency or USD).strip().upper()
    if not _CURRENCY.fullmatch(unit):
        raise Refused(f"{unit[:_SHOWN]!r} is no currency", hint="three letters, as USD or EUR")
    amount = text.strip()
    for ending in _PER_HOUR:
        amount = amount.removesuffix(ending)
    try:
        # The limit is in USD; a yen is less.
        return Rate(usd(amount, 1 if unit == USD else None), unit)
    except NoAmount as e:
        raise Refused(f"no price of a GPU hour: {e}", hint="a price is a plain number, as 3.60") from e


def instance_meant(
    name: str, *, provider: str | None = None, region: str | None = None, among: Iterable[Instance]
) -> Instance:
    """The one instance of a list that a name means; ``p5.48xlarge@us-east-1`` names the region, too.

    Raises :class:`~rooflight.errors.Refused` when there is none, or several prices of it.
    """
    asked, at, place = name.rpartition("@")
    listed = tuple(among)
    found = find_instances(name, provider=provider, region=region, among=listed)
    if not found and at:
        found = find_instances(asked, provider=provider, region=place, among=listed)
    shown = repr(name[:_SHOWN])
    if not found:
        raise Refused(f"unknown instance {shown}", hint="`rooflight gpus instances` lists them")
    if len(found) > 1:
        places = ", ".join(sorted({f"{i.provider} {i.region}".strip() for i in found})[:_PLACES])
        raise Refused(
            f"{shown} has several prices: {places}",
            hint="say the provider and the region",
        )
    return found[0]


def rate_of(instance: Instance) -> Rate:
    """What a GPU of an instance costs; raises :class:`~rooflight.errors.Refused` where no price is known."""
    price = price_per_gpu_hour(instance)
    if price is None:
        raise Refused(
            f"no price of {instance.name[:_SHOWN]!r} is known", hint="give the price, or a list of your own"
        )
    where = " ".join(t for t in (instance.provider, instance.name, instance.region) if t)
    return Rate(price, USD, f"{where}, {instance.date}" if instance.date else where)
