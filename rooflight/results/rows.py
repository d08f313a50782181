"""What every row of a table says of its launches or calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from rooflight.protocol import Kernel
from rooflight.trace.tables import I64
from rooflight.units import pct, us

BINS = 12
_FEW = 64
_MAX_TEXT = 4096


class Work(Struct, frozen=True, gc=False):
    """Totals over the launches, ``None`` where unknown; ``bound_ns`` and ``t_ns`` are of the median one."""

    flops: int | None
    bytes: int | None
    bound_ns: float | None
    total_bound_ns: float | None
    t_ns: float
    ai: float | None


def table_row(durations: I64, total_ns: int, work: Work) -> Kernel:
    """A row with its figures and no name yet; ``durations`` in ns, shortest first, ``total_ns`` of the
    whole table."""
    # A few numbers are counted faster one by one.
    values = durations.tolist() if durations.size <= _FEW else durations
    time, count = int(sum(values) if isinstance(values, list) else durations.sum()), len(values)
    low, high = int(values[0]), int(values[-1])
    p50, p95, p99 = (percentile(values, p) for p in (50, 95, 99)) if high > low else (low, low, low)
    limit, total_limit = work.bound_ns, work.total_bound_ns
    return Kernel(
        name="",
        count=count,
        time_us=us(time),
        share_pct=pct(time, total_ns),
        min_us=us(low),
        p50_us=us(p50),
        p95_us=us(p95),
        p99_us=us(p99),
        max_us=us(high),
        flops=work.flops,
        bytes=work.bytes,
        ai=rounded(work.ai),
        achieved_tflops=_rate(work.flops, time, 1e3),
        achieved_gbs=_rate(work.bytes, time, 1.0),
        bound_us=None if total_limit is None else us(total_limit),
        # A bound of 0 (no work at all) is no roof to be a fraction of.
        roof_fraction=None if not limit or not work.t_ns else rounded(limit / work.t_ns),
        histogram=_histogram(values, low, high) if high > low else [],
    )


def percentile(ordered: Sequence[int] | I64, p: int) -> float:
    """A percentile of sorted values, with linear interpolation (numpy's default)."""
    at, rest = divmod((len(ordered) - 1) * p, 100)
    low, high = int(ordered[at]), int(ordered[min(at + 1, len(ordered) - 1)])
    return low + (high - low) * rest / 100


def _histogram(durations: list[int] | I64, low: int, high: int) -> list[int]:
    """Counts in equal bins from the shortest to the longest, which belongs to the last bin."""
    if isinstance(durations, list):
        counts = [0] * BINS
        for d in durations:
            counts[min(int((d - low) / (high - low) * BINS), BINS - 1)] += 1
        return counts
    bins = ((durations - low) / (high - low) * BINS).astype(np.int64)
    whole: list[int] = np.bincount(np.minimum(bins, BINS - 1), minlength=BINS).tolist()
    return whole


def rounded(value: float | None) -> float | None:
    """Fifteen significant digits: the quotient of the row's own whole numbers, without binary dust."""
    return None if value is None else float(f"{value:.15g}")


def cut(text: str | None) -> str | None:
    """Text short enough for a table; the recording has the rest."""
    return text if text is None or len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _rate(amount: int | None, ns: int, per: float) -> float | None:
    """Amount per ns over ``per``: FLOP/ns over 1000 is TFLOP/s, byte/ns is GB/s."""
    return None if amount is None or not ns else rounded(amount / ns / per)
