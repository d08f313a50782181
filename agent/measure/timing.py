"""Repeating a piece of work until its time is known."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.measure import load

Work = Callable[[], object]

#: A timed sample lasts at least this long, so that clock and synchronisation weigh under 1 %.
SAMPLE_S = 2e-3
#: On a CPU nothing is synchronised and the clock costs 0.1 us.  The shorter a sample, the likelier one
#: falls between two programs that share the CPUs.
CPU_SAMPLE_S = 2e-4
LEAST_SAMPLES = 5
#: Calls that :func:`repeat` makes at the least: the warm-up, the one that sets the sample, the samples.
LEAST_CALLS = LEAST_SAMPLES + 2
MOST_SAMPLES = 1000
#: Others' share of the CPUs up to which a measurement counts as undisturbed.
QUIET = 0.15


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call; ``spread`` is the interquartile range of the samples over their median (a
    fraction), ``estimator`` says which of them ``seconds`` is; ``disturbed`` that others used the CPUs."""

    seconds: float
    spread: float
    estimator: str
    disturbed: bool = False


def repeat(work: Work, synchronize: Work, budget_s: float, sample_s: float = SAMPLE_S) -> Timing:
    """Call ``work`` for about ``budget_s`` seconds, at least :data:`LEAST_SAMPLES` samples of at least
    ``sample_s`` seconds.

    The first call is a warm-up and is not counted; ``synchronize`` waits for a device that runs
    behind the host.
    """
    _timed(work, synchronize, 1)
    calls = max(1, math.ceil(sample_s / max(_timed(work, synchronize, 1), 1e-9)))
    samples: list[float] = []
    before = load.now()
    deadline = time.perf_counter() + budget_s
    while len(samples) < LEAST_SAMPLES or (time.perf_counter() < deadline and len(samples) < MOST_SAMPLES):
        samples.append(_timed(work, synchronize, calls))
    return summarize(samples, load.others(before, load.now()))


def summarize(samples: list[float], others: float | None) -> Timing:
    """The median of at least two samples; the fastest while ``others`` used more than :data:`QUIET` of
    the CPUs, since they can only slow us down, and a ceiling is what the device itself can do."""
    median = statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    disturbed = others is not None and others > QUIET
    chosen = f"{'fastest' if disturbed else 'median'} of {len(samples)}"
    return Timing(min(samples) if disturbed else median, (high - low) / median, chosen, disturbed)


def _timed(work: Work, synchronize: Work, calls: int) -> float:
    synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    synchronize()
    return (time.perf_counter() - start) / calls
