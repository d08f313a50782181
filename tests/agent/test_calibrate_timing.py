"""Samples: which count, and what they tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.measure import timing
from agent.measure.timing import Tally, Timing, Watch, is_quiet, spread, summarize
from agent.measure.waits import Waits, longest


class Clock:
    """A clock that work moves, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def work(self, *seconds: float) -> Callable[[], None]:
        """Work that takes these seconds, the last one for ever."""
        left = list(seconds)

        def call() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


class Waiting:
    """Stands in for the scheduler: what one thread has waited at each look, in ns."""

    def __init__(self, *ns: int) -> None:
        self._ns: Iterator[int] = iter(ns)

    def refresh(self) -> None:
        """No thread is ever new."""

    def look(self) -> tuple[int, ...]:
        return (next(self._ns),)


def test_the_fast_decile_of_a_cpu_and_the_median_of_a_gpu() -> None:
    """1 to 11: the median is 6; the inclusive decile is the 0.1 (11 - 1) = first after the lowest, 2;
    quartiles 3.5 and 8.5, so that the spread is 5 / 6."""
    tally = Tally(quiet=[11.0, 1.0, 3.0, 2.0, 4.0, 6.0, 5.0, 7.0, 9.0, 8.0, 10.0])
    cpu, gpu = summarize(tally, steady=False), summarize(tally, steady=True)
    assert (cpu.seconds, cpu.estimator, cpu.samples) == (2.0, "fast decile of 11", 11)
    assert (gpu.seconds, gpu.estimator) == (6.0, "median of 11")
    assert cpu.spread == gpu.spread == pytest.approx(5 / 6)


def test_disturbed_samples_do_not_count_while_enough_are_quiet() -> None:
    found = summarize(Tally(quiet=[3.0] * 5, disturbed=[1.0, 100.0]), steady=False)
    assert found == Timing(3.0, 0.0, "fast decile of 5 undisturbed of 7", 5)


def test_of_too_few_quiet_samples_the_fastest_of_all_is_told() -> None:
    found = summarize(Tally(quiet=[3.0] * 4, disturbed=[2.0, 100.0]), steady=False)
    assert (found.seconds, found.estimator, found.samples, found.disturbed) == (2.0, "fastest of 6", 4, True)
    assert not summarize(Tally(quiet=[3.0, 4.0]), steady=True).disturbed


def test_one_sample_has_no_spread() -> None:
    assert spread([2.0]) == 0.0


def test_nothing_measured_is_infinitely_slow() -> None:
    assert Tally().fastest == math.inf


def test_a_thread_that_waited_a_hundredth_of_a_sample_disturbs_it() -> None:
    """1 % of 10 ms are 100 us; of 1 ms 10 us, but a thread may take 20 us to wake."""
    assert is_quiet(10e-3, 100e-6)
    assert not is_quiet(10e-3, 101e-6)
    assert is_quiet(1e-3, 20e-6)
    assert not is_quiet(1e-3, 21e-6)
    assert is_quiet(1.0, None)


def test_the_first_calls_and_the_one_that_settles_are_not_counted(clock: Clock) -> None:
    """5 s, then 1 s that tells that one call makes a sample, 3 s to settle, then 2 s a call: three of
    them pass the 8 s that begin before the settling."""
    tally = Tally()
    Watch(sample_s=0.5).turn(clock.work(5, 1, 3, 2), tally, budget_s=8)
    assert tally == Tally(calls=1, quiet=[2.0, 2.0, 2.0])


def test_short_calls_are_timed_together(clock: Clock) -> None:
    """A sample of at least 1 s of calls of 0.375 s: three of them."""
    tally = Tally()
    Watch(sample_s=1.0).turn(clock.work(0.375), tally, budget_s=0)
    assert (tally.calls, tally.quiet) == (3, [0.375])


def test_work_that_is_slower_than_its_budget_is_sampled_once(clock: Clock) -> None:
    tally = Tally()
    Watch().turn(clock.work(60), tally, budget_s=0.01)
    Watch().turn(clock.work(50), tally, budget_s=0.01)
    assert tally.quiet == [60.0, 50.0]


def test_after_a_disturbance_it_settles_again(clock: Clock) -> None:
    """Samples of 1 s; the scheduler is asked before and after each.  Counted are the second (the first
    settles), the third as disturbed by 0.5 s, not the fourth, which settles again, and the fifth."""
    waits = Waiting(0, 0, 0, 0, 0, 500_000_000, 500_000_000, 500_000_000, 500_000_000, 500_000_000)
    tally = Tally(calls=1)
    Watch(waits=waits).turn(clock.work(1, 2, 3, 4, 5), tally, budget_s=15)  # type: ignore[arg-type]
    assert (tally.quiet, tally.disturbed) == ([2.0, 5.0], [3.0])


def test_the_device_is_waited_for_before_and_after_a_sample(clock: Clock) -> None:
    """The host starts work in no time; what is timed is the device's second."""
    tally, queue = Tally(calls=1), [0.0]

    def start() -> None:
        queue[0] += 1.0

    def synchronize() -> None:
        clock.now += queue[0]
        queue[0] = 0.0

    Watch(synchronize, steady=True).turn(start, tally, budget_s=0)
    assert tally.quiet == [1.0]


def test_the_longest_wait_of_a_thread_is_the_samples() -> None:
    assert longest((0, 1_000), (2_000_000, 4_001_000)) == pytest.approx(4e-3)
    assert longest((), ()) is None


def test_the_scheduler_tells_how_long_each_thread_waited(tmp_path: Path) -> None:
    """The second figure of schedstat, in ns: 4 us for the one thread, 7 for the other; the third keeps no
    account."""
    for thread, text in (("11", "900 4000 3\n"), ("12", "800 7000 2\n")):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(text)
    (tmp_path / "13").mkdir()
    with Waits(tmp_path) as waits:
        waits.refresh()
        assert sorted(waits.look()) == [4_000, 7_000]
        (tmp_path / "11/schedstat").write_text("950 5000 4\n")
        assert sorted(waits.look()) == [5_000, 7_000]
        (tmp_path / "12/schedstat").write_text("")
        assert sorted(waits.look()) == [0, 5_000]


def test_a_kernel_that_keeps_no_account_tells_nothing(tmp_path: Path) -> None:
    with Waits(tmp_path / "none") as waits:
        waits.refresh()
        assert waits.look() == ()
