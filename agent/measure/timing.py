"""Repeating a piece of work until its time is known."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.measure.waits import Waits, longest

Work = Callable[[], object]

#: A timed sample lasts at least this long, so that clock and synchronisation weigh under 1 %.
GPU_SAMPLE_S = 2e-3
#: On a CPU nothing is synchronised and the clock costs 0.1 us.  The shorter a sample, the likelier one
#: falls between two programs that share the CPUs.
CPU_SAMPLE_S = 2e-4
LEAST_SAMPLES = 5
#: Calls of a first turn at the least: two that set the length of a sample, one to settle, a sample.
FIRST_CALLS = 4
MOST_SAMPLES = 5000
#: Others' share of the CPUs up to which a machine counts as idle.
QUIET = 0.15
#: A sample is disturbed when a thread of ours waited for a CPU for more than this share of it; a thread
#: that was asleep needs some microseconds to be woken even on an idle machine.
WAIT_SHARE, WAKING_S = 0.01, 20e-6


@dataclass(slots=True)
class Tally:
    """Samples of one piece of work, in seconds of one call.  ``quiet`` are those in which no other
    program took a CPU from us, as far as the kernel tells; ``calls`` is how many one sample times.

    After a rest or a disturbance the first ``settle`` samples are not counted: operands, threads and
    clocks have to be fetched and woken, and what waits in the caches to be written has to fill up again,
    without which memory seems faster than it is.
    """

    settle: int = 1
    calls: int = 0
    quiet: list[float] = field(default_factory=list)
    disturbed: list[float] = field(default_factory=list)

    @property
    def fastest(self) -> float:
        """Seconds of one call at best, infinite before the first sample."""
        return min([*self.quiet, *self.disturbed], default=math.inf)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call; ``spread`` is the interquartile range of the ``samples`` that count over their
    median (a fraction), ``estimator`` says which ``seconds`` is; ``disturbed`` that others had the CPUs
    in all but a few of the samples."""

    seconds: float
    spread: float
    estimator: str
    samples: int = 0
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """How samples are taken on a device.

    ``synchronize`` waits for a device that runs behind the host; ``waits`` tells who was kept from a
    CPU, ``None`` where the host's load does not matter; ``steady`` is a device whose sustained rate
    counts, since it starts above what its power allows.
    """

    synchronize: Work = lambda: None
    sample_s: float = CPU_SAMPLE_S
    waits: Waits | None = None
    steady: bool = False

    def turn(self, work: Work, tally: Tally, budget_s: float) -> None:
        """Sample ``work`` for about ``budget_s`` seconds, once at the least."""
        if not tally.calls:
            self._timed(work, 1)
            tally.calls = max(1, math.ceil(self.sample_s / max(self._timed(work, 1), 1e-9)))
        if self.waits is not None:
            self.waits.refresh()
        deadline = time.perf_counter() + budget_s
        settled = 0
        while True:
            seconds, quiet = self._sample(work, tally.calls)
            counts = not quiet or settled >= tally.settle
            if counts:
                (tally.quiet if quiet else tally.disturbed).append(seconds)
            settled = settled + 1 if quiet else 0
            if counts and (time.perf_counter() >= deadline or len(tally.quiet) >= MOST_SAMPLES):
                return

    def timing(self, tally: Tally) -> Timing:
        """What the samples of a tally tell, of which there is at least one."""
        return summarize(tally, steady=self.steady)

    def _sample(self, work: Work, calls: int) -> tuple[float, bool]:
        """Seconds of one call, and whether it was left alone."""
        before = self.waits.look() if self.waits is not None else ()
        seconds = self._timed(work, calls)
        waited = longest(before, self.waits.look()) if self.waits is not None else None
        return seconds, is_quiet(seconds * calls, waited)

    def _timed(self, work: Work, calls: int) -> float:
        self.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        self.synchronize()
        return (time.perf_counter() - start) / calls


def is_quiet(sample_s: float, waited_s: float | None) -> bool:
    """Whether a sample was left alone; one of which nothing is known counts as such."""
    return waited_s is None or waited_s <= max(WAKING_S, WAIT_SHARE * sample_s)


def summarize(tally: Tally, *, steady: bool) -> Timing:
    """The fast decile of the quiet samples: a ceiling is what the device itself can do, and whatever else
    shares its memory and its power can only slow it down; the very fastest is often a freak.  Of a
    ``steady`` device the median.  Of fewer than :data:`LEAST_SAMPLES` quiet ones the fastest of all.
    """
    every = [*tally.quiet, *tally.disturbed]
    if len(tally.quiet) < LEAST_SAMPLES:
        how = f"fastest of {len(every)}"
        return Timing(min(every), spread(every), how, len(tally.quiet), bool(tally.disturbed))
    samples = tally.quiet
    of = f"{len(samples)} undisturbed of {len(every)}" if tally.disturbed else f"{len(samples)}"
    if steady:
        return Timing(statistics.median(samples), spread(samples), f"median of {of}", len(samples))
    decile = statistics.quantiles(samples, n=10, method="inclusive")[0]
    return Timing(decile, spread(samples), f"fast decile of {of}", len(samples))


def spread(samples: list[float]) -> float:
    """The interquartile range over the median, 0 of a single sample."""
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / statistics.median(samples)
