"""Amounts of money as they come in: exact decimals in USD, and what cannot be a price of an instance."""

from __future__ import annotations

import re
from decimal import Decimal

#: No GPU costs so much for an hour: such a figure is a month's price, or in another unit.
MAX_USD_PER_GPU_HOUR = Decimal(1000)
#: Stands for the number of GPUs where it is not known; no instance has more.
_MOST_GPUS = 100
_PLAIN = re.compile(r"[+-]?(\d{1,15}(\.\d{0,18})?|\.\d{1,18})([eE][+-]?\d{1,2})?", re.ASCII)
_SHOWN = 40


class NoAmount(ValueError):  # noqa: N818  (a signal to the reader, who knows the place)
    """A text or figure that is no usable price; says why."""


def usd(value: object, gpu_count: int | None) -> Decimal:
    """USD per hour of an instance with ``gpu_count`` GPUs, with all the digits that were written.

    Takes a text or a number of JSON.  Raises :class:`NoAmount` for anything but a plain positive number
    of at most ``MAX_USD_PER_GPU_HOUR`` per GPU.
    """
    text = str(value).strip() if isinstance(value, (str, int, float, Decimal)) else ""
    if isinstance(value, bool) or len(text) > _SHOWN or not _PLAIN.fullmatch(text):
        raise NoAmount(f"{shown(value)} is no plain number of USD")
    amount = Decimal(text)
    if amount <= 0:
        raise NoAmount("the price is zero" if amount == 0 else f"the price is negative: {text}")
    if amount > MAX_USD_PER_GPU_HOUR * (gpu_count or _MOST_GPUS):
        raise NoAmount(f"{text} is more than {MAX_USD_PER_GPU_HOUR} USD per GPU and hour")
    return amount


def shown(value: object) -> str:
    """What somebody wrote, cut to a length that fits a line."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
