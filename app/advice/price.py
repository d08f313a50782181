"""The price that a request asks for: an amount, or an instance of the service's list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from app.deps import Listed
from rooflight.errors import Refused
from rooflight.prices import Instance
from rooflight.prices.rate import Rate, instance_meant, rate_given, rate_of

_PRICE = Query(max_length=40, description="For one GPU and hour, as 3.60 or 3.60/h.")
_CURRENCY = Query(max_length=3, description="Of the price, as USD (which it is when left out) or EUR.")
_INSTANCE = Query(
    max_length=200, description="At the price of this instance, per GPU, as NAME or NAME@REGION."
)
_FILTER = Query(max_length=200)


@dataclass(frozen=True, slots=True)
class Pricing:
    """What was asked for, not yet looked at; empty texts are none."""

    listed: tuple[Instance, ...]
    price: str | None = None
    currency: str | None = None
    instance: str | None = None
    provider: str | None = None
    region: str | None = None

    def rate(self) -> Rate | None:
        """The rate; ``None`` when nothing was asked.  Raises :class:`~rooflight.errors.Refused`."""
        if self.price and self.instance:
            raise Refused("price and instance both give a price", hint="give one of them")
        if self.price:
            return rate_given(self.price, self.currency or None)
        if not self.instance:
            return None
        where = {"provider": self.provider or None, "region": self.region or None}
        return rate_of(instance_meant(self.instance, **where, among=self.listed))


def _asked(
    listed: Listed,
    price: Annotated[str | None, _PRICE] = None,
    currency: Annotated[str | None, _CURRENCY] = None,
    instance: Annotated[str | None, _INSTANCE] = None,
    provider: Annotated[str | None, _FILTER] = None,
    region: Annotated[str | None, _FILTER] = None,
) -> Pricing:
    return Pricing(listed, price, currency, instance, provider, region)


Asked = Annotated[Pricing, Depends(_asked)]
