"""What every row of a table says of its launches or calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from rooflight.protocol import Kernel
from rooflight.trace.tables import I64
from rooflight.units import pct, us, us_of_each

BINS = 12
_MAX_TEXT = 4096


class Work(Struct, frozen=True, gc=False):
    """Totals over the launches, ``None`` where unknown; ``bound_ns`` and ``t_ns`` are of the median one."""

    flops: int | None
    bytes: int | None
    bound_ns: float | None
    total_bound_ns: float | None
    t_ns: float
    ai: float | None


class Spread(Struct, frozen=True, gc=False):
    """The launches of a row: how many, their times in µs, and counts in equal bins from the shortest to the
    longest, none where all are as long; ``time_ns`` is the sum."""

    count: int
    time_ns: int
    min_us: float
    p50_us: float
    p95_us: float
    p99_us: float
    max_us: float
    histogram: list[int]


def spreads(durations: Sequence[I64]) -> list[Spread]:
    """The spread of each row's launches, of which it has one at least; ns, shortest first."""
    if not durations:
        return []
    ordered, count = np.concatenate(durations), np.array([d.size for d in durations])
    end = np.cumsum(count)
    first = end - count
    low, high = ordered[first], ordered[end - 1]
    columns = (
        count.tolist(),
        np.add.reduceat(ordered, first).tolist(),
        us_of_each(low),
        *(us_of_each(_percentiles(ordered, first, count, p)) for p in (50, 95, 99)),
        us_of_each(high),
        _histograms(ordered, count, low, high),
    )
    return [Spread(*row) for row in zip(*columns, strict=True)]


def _percentiles(ordered: I64, first: I64, count: I64, p: int) -> I64:
    """As :func:`percentile`, of each row, to the nearest ns; halves to the even one."""
    at, rest = np.divmod((count - 1) * p, 100)
    low = ordered[first + at]
    wide, narrow = np.divmod(ordered[first + np.minimum(at + 1, count - 1)] - low, 100)
    more, left = np.divmod(narrow * rest, 100)
    whole = low + wide * rest + more
    nearest: I64 = whole + ((left > 50) | ((left == 50) & (whole % 2 == 1)))
    return nearest


def _histograms(ordered: I64, count: I64, low: I64, high: I64) -> list[list[int]]:
    """The longest belongs to the last bin."""
    n, row = count.size, np.repeat(np.arange(count.size), count)
    share = (ordered - low[row]) / np.maximum(high - low, 1)[row]
    place = np.minimum((share * BINS).astype(np.int64), BINS - 1)
    bins = np.bincount(row * BINS + place, minlength=n * BINS).reshape(n, BINS)
    return [b if spread else [] for b, spread in zip(bins.tolist(), (high > low).tolist(), strict=True)]


def table_row(spread: Spread, total_ns: int, work: Work) -> Kernel:
    """A row with its figures and no name yet; ``total_ns`` is of the whole table."""
    time, limit, total_limit = spread.time_ns, work.bound_ns, work.total_bound_ns
    return Kernel(
        name="",
        count=spread.count,
        time_us=us(time),
        share_pct=pct(time, total_ns),
        min_us=spread.min_us,
        p50_us=spread.p50_us,
        p95_us=spread.p95_us,
        p99_us=spread.p99_us,
        max_us=spread.max_us,
        flops=work.flops,
        bytes=work.bytes,
        ai=rounded(work.ai),
        achieved_tflops=_rate(work.flops, time, 1e3),
        achieved_gbs=_rate(work.bytes, time, 1.0),
        bound_us=None if total_limit is None else us(total_limit),
        # A bound of 0 (no work at all) is no roof to be a fraction of.
        roof_fraction=None if not limit or not work.t_ns else rounded(limit / work.t_ns),
        histogram=spread.histogram,
    )


def percentile(ordered: Sequence[int], p: int) -> float:
    """A percentile of sorted values, with linear interpolation (numpy's default)."""
    at, rest = divmod((len(ordered) - 1) * p, 100)
    low, high = ordered[at], ordered[min(at + 1, len(ordered) - 1)]
    return low + (high - low) * rest / 100


def rounded(value: float | None) -> float | None:
    """Fifteen significant digits: the quotient of the row's own whole numbers, without binary dust."""
    return None if value is None else float(f"{value:.15g}")


def cut(text: str | None) -> str | None:
    """Text short enough for a table; the recording has the rest."""
    return text if text is None or len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _rate(amount: int | None, ns: int, per: float) -> float | None:
    """Amount per ns over ``per``: FLOP/ns over 1000 is TFLOP/s, byte/ns is GB/s."""
    return None if amount is None or not ns else rounded(amount / ns / per)
