"""The what-if that a page's form asks: a scenario, and what a GPU hour costs there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from app.advice.price import Pricing
from app.deps import Listed
from rooflight.errors import Refused
from rooflight.prices import Instance
from rooflight.prices.rate import USD, Rate, instance_meant, rate_given, rate_of
from rooflight.scenarios import Scenario

AS_RECORDED = Scenario()
_NAME = Query(max_length=200)
_SHORT = Query(max_length=40)


@dataclass(frozen=True, slots=True)
class Question:
    """Not yet looked at; empty texts are none.  ``there`` is an instance with the GPU that is asked for,
    ``there_price`` what an hour of one such GPU costs."""

    listed: tuple[Instance, ...] = ()
    scenario: Scenario = AS_RECORDED
    there: str = ""
    there_price: str = ""

    @property
    def asked(self) -> bool:
        return self.scenario != AS_RECORDED

    def rate(self, gpu_id: str | None, *, moved: bool, here: Pricing) -> Rate | None:
        """What a GPU hour costs there; on the recorded GPU what the page's own price says.

        Raises :class:`~rooflight.errors.Refused` for what is no price, and for an instance of another GPU.
        """
        if self.there_price:
            return rate_given(self.there_price)
        if self.there:
            return rate_of(self._instance(gpu_id))
        return None if moved else in_usd(here)

    def _instance(self, gpu_id: str | None) -> Instance:
        found = instance_meant(self.there, among=self.listed)
        if found.gpu_id != gpu_id:
            other = gpu_id or "a GPU that is not known"
            raise Refused(f"{found.name[:60]!r} has a {found.gpu_id}, not {other}", hint="choose it again")
        return found


def in_usd(here: Pricing) -> Rate | None:
    """The page's own price, which only compares with others in USD."""
    # What is wrong with it is said beside its own form.
    try:
        rate = here.rate()
    except Refused:
        return None
    return rate if rate is not None and rate.currency == USD else None


def _question(
    listed: Listed,
    gpu: Annotated[str | None, _NAME] = None,
    dtype: Annotated[str | None, _SHORT] = None,
    roofs_reached: bool = False,
    fused: bool = False,
    overlapped: bool = False,
    input_ready: bool = False,
    there: Annotated[str | None, _NAME] = None,
    there_price: Annotated[str | None, _SHORT] = None,
) -> Question:
    scenario = Scenario(gpu or None, dtype or None, roofs_reached, fused, overlapped, input_ready)
    return Question(listed, scenario, (there or "").strip(), (there_price or "").strip())


WhatIfAsked = Annotated[Question, Depends(_question)]
