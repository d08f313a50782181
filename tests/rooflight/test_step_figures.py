"""Steps that overlap, in whatever number: their sums, and the time that they take."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rooflight import analyze
from rooflight.protocol import PARTS, Rank
from tests.drawing import timeline_from_events


def row(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step(n: int, ts: float, dur: float, tid: int = 1) -> dict[str, Any]:
    return row("user_annotation", f"ProfilerStep#{n}", ts, dur, tid)


def launched(n: int, ts: float, dur: float, tid: int = 1) -> list[dict[str, Any]]:
    """A call at ``ts`` and a kernel of ``dur`` µs that starts 3 µs later."""
    kernel = row("kernel", f"k{n % 7}", ts + 3, dur, 7, correlation=n, device=0, stream=7)
    return [row("cuda_runtime", "cudaLaunchKernel", ts, 1, tid, correlation=n), kernel]


def analysed(events: list[dict[str, Any]]) -> Rank:
    return analyze(timeline_from_events(events)).document.ranks[0]


def test_an_instant_in_two_steps_counts_in_each() -> None:
    """Kernels run over [3, 8), [13, 18), [23, 28): step 1 over [0, 20) has 10 µs of them, step 2 over
    [5, 25) has 3 + 5 + 2.  Launches at 0, 10, 20: step 1 launched two kernels of 5 µs, step 2 two."""
    rank = analysed([step(1, 0, 20), step(2, 5, 20), *(r for i in range(3) for r in launched(i, 10 * i, 5))])
    assert [(s.gpu_busy_in_window_us, s.gpu_launched_us) for s in rank.steps] == [(10.0, 10.0), (10.0, 10.0)]
    assert [s.attainable_us for s in rank.steps] == [10.0, 10.0]  # of unknown cost: all of it
    for s in rank.steps:
        assert s.parts_us is not None
        assert sum(getattr(s.parts_us, p) for p in PARTS) == s.step_time_us


def test_steps_of_two_threads_share_no_idle_instant() -> None:
    """Nothing runs but one kernel at the end: thread 1 waits for input over [0, 60), in step 1 over
    [0, 100); thread 2 is in step 2 over [40, 80), and waits for nothing.  From 40 on, the inner step's
    thread counts: input [0, 40), host [40, 97) but the kernel's own launch."""
    rank = analysed([
        step(1, 0, 100), step(2, 40, 40, tid=2),
        row("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 60), *launched(1, 94, 3, tid=3),
    ])  # fmt: skip
    first, second = (s.parts_us for s in rank.steps)
    assert first is not None
    assert second is not None
    assert (first.input, first.host, first.launch, first.unknown) == (40, 54, 3, 3)
    assert (second.input, second.host) == (0, 40)


def overlapping(n: int) -> list[dict[str, Any]]:
    """Each of the steps spans all the kernels that follow it."""
    return [e for i in range(n) for e in (step(i, 10 * i, 10 * n), *launched(i, 10 * i + 1, 3))]


def a_thread_each(n: int) -> list[dict[str, Any]]:
    """Every step and every launch is on a thread of its own, and overlaps the next."""
    return [e for i in range(n) for e in (step(i, 10 * i, 15, i), *launched(i, 10 * i + 1, 3, i))]


def an_op_each(n: int) -> list[dict[str, Any]]:
    """On a CPU: every step has an op that no other has."""
    return [e for i in range(n) for e in (step(i, 10 * i, 10), row("cpu_op", f"op{i}", 10 * i + 1, 3))]


@pytest.mark.parametrize(
    ("events", "n"), [(overlapping, 10_000), (a_thread_each, 3_000), (an_op_each, 3_000)]
)
def test_thousands_of_steps_take_a_second_and_not_minutes(events: Any, n: int) -> None:
    timeline = timeline_from_events(events(n))
    begin = time.process_time()
    rank = analyze(timeline).document.ranks[0]
    assert time.process_time() - begin < 4
    assert len(rank.steps) == n
