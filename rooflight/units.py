"""Units at the borders.  Inside, times are integer nanoseconds and rates are per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NS_PER_US = 1_000
US_PER_MS = 1_000
NS_PER_S = 1_000_000_000
TERA = 1e12
GIGA = 1e9
_TOLD_APART = 1 << 50


def us(ns: int | float) -> float:
    """Nanoseconds (a part of one rounds to the nearest) as microseconds with three decimals, the form of
    every ``*_us`` field."""
    whole = round(ns)
    # A thousandth of a whole number is nearest to its three decimals already, while doubles tell these apart.
    return whole / NS_PER_US if -_TOLD_APART < whole < _TOLD_APART else round(whole / NS_PER_US, 3)


def us_of_each(ns: NDArray[np.int64]) -> list[float]:
    """As :func:`us`, of a column of whole ns."""
    if ns.size and max(-ns.min(), ns.max()) >= _TOLD_APART:
        return [us(value) for value in ns.tolist()]
    told: list[float] = (ns / NS_PER_US).tolist()
    return told


def us_or_none(ns: int | float | None) -> float | None:
    """As :func:`us`; an unknown stays unknown."""
    return None if ns is None else us(ns)


def pct(part: int | float, whole: int | float) -> float | None:
    """100 x part / whole, two decimals; ``None`` when the whole is 0."""
    return None if not whole else round(100.0 * part / whole, 2)
