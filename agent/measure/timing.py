"""Repeating a piece of work until its time is known."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]

#: A timed sample lasts at least this long, so that clock and synchronisation weigh under 1 %.
SAMPLE_S = 2e-3
LEAST_SAMPLES = 5
MOST_SAMPLES = 100


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: the median over the samples; ``spread`` is their interquartile range over
    the median (a fraction)."""

    seconds: float
    spread: float
    samples: int


def repeat(work: Work, synchronize: Work, budget_s: float) -> Timing:
    """Call ``work`` for about ``budget_s`` seconds, at least :data:`LEAST_SAMPLES` samples.

    The first call is a warm-up and is not counted; ``synchronize`` waits for a device that runs
    behind the host.
    """
    _timed(work, synchronize, 1)
    calls = max(1, math.ceil(SAMPLE_S / max(_timed(work, synchronize, 1), 1e-9)))
    samples: list[float] = []
    deadline = time.perf_counter() + budget_s
    while len(samples) < LEAST_SAMPLES or (time.perf_counter() < deadline and len(samples) < MOST_SAMPLES):
        samples.append(_timed(work, synchronize, calls))
    return summarize(samples)


def summarize(samples: list[float]) -> Timing:
    """Median and interquartile spread of at least two samples."""
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(median, (high - low) / median, len(samples))


def _timed(work: Work, synchronize: Work, calls: int) -> float:
    synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    synchronize()
    return (time.perf_counter() - start) / calls
