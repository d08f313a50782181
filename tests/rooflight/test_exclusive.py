"""The time that each kernel group has for itself: each instant has one owner, groups add up to the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import analyze
from rooflight.protocol import PARTS, Kernel, Parts, Rank
from rooflight.results.exclusive import Depth
from tests.drawing import timeline_from_events

WORK = PARTS[:6]


def analysed(events: list[dict[str, Any]]) -> Rank:
    return analyze(timeline_from_events(events)).document.ranks[0]


def row(cat: str, name: str, ts: float, dur: float, stream: int = 7, **args: Any) -> dict[str, Any]:
    at = {"device": 0, "stream": stream} if cat in ("kernel", "gpu_memcpy") else {}
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 1, "ts": ts, "dur": dur, "args": args | at}


def own(rank: Rank) -> dict[str, tuple[float | None, float | None, int | None]]:
    return {k.name: (k.exclusive_us, k.steps_exclusive_us, k.steps_count) for k in rank.kernels}


def ns(us: float | None) -> int:
    assert us is not None
    return round(us * 1000)


def part_of(k: Kernel) -> str:
    return k.regime if k.kind == "kernel" else "copy"


def test_of_two_kernels_at_once_the_first_has_the_instant():
    """early [0, 20) and late [10, 30): early has 20, late what is left of it, 10."""
    rank = analysed([row("kernel", "early", 0, 20), row("kernel", "late", 10, 20, 8)])
    assert {name: found[0] for name, found in own(rank).items()} == {"early": 20, "late": 10}
    assert rank.parts_us["0"].unknown == 30


def test_kernels_go_before_communication_and_that_before_copies():
    """work [10, 20), all_reduce [5, 25), copy [0, 30): communication has [5, 10) and [20, 25), the copy
    [0, 5) and [25, 30)."""
    rank = analysed([
        row("kernel", "work", 10, 10),
        row("kernel", "ncclDevKernel_AllReduce", 5, 20, 8),
        row("gpu_memcpy", "Memcpy HtoD", 0, 30, 9),
    ])  # fmt: skip
    whole = {name: found[0] for name, found in own(rank).items()}
    assert whole == {"work": 10, "ncclDevKernel_AllReduce": 10, "Memcpy HtoD": 10}
    assert {found[1:] for found in own(rank).values()} == {(None, None)}, "no steps: unknown, not 0"


def test_only_what_lies_in_steps_counts_for_them_and_twice_where_two_overlap():
    """Steps [10, 30) and [20, 40).  k runs over [0, 5), [5, 15), [22, 27), [38, 48): alone 30 in all; in
    the first step 5 + 5, in the second 5 + 2.  Starts at 22 (in both) and 38 (the second): 2 + 1 launches."""
    rank = analysed([
        row("user_annotation", "ProfilerStep#1", 10, 20), row("user_annotation", "ProfilerStep#2", 20, 20),
        *(row("kernel", "k", ts, dur) for ts, dur in ((0, 5), (5, 10), (22, 5), (38, 10))),
    ])  # fmt: skip
    assert own(rank) == {"k": (30, 17, 3)}
    assert sum(s.parts_us.unknown for s in rank.steps if s.parts_us) == 17


def test_of_an_op_on_the_cpu_it_is_the_self_time_within_the_steps():
    """outer [10, 30) holds inner [15, 20): 15 and 5 of their own; the outer call at 50 is in no step."""
    rank = analysed([
        row("user_annotation", "ProfilerStep#1", 0, 40), row("cpu_op", "outer", 10, 20),
        row("cpu_op", "inner", 15, 5), row("cpu_op", "outer", 50, 10),
    ])  # fmt: skip
    assert rank.cpu is not None
    found = {k.name: (k.exclusive_us, k.steps_exclusive_us, k.steps_count) for k in rank.cpu.ops}
    assert found == {"outer": (15, 15, 1), "inner": (5, 5, 1)}
    assert rank.cpu.parts_us is not None
    assert rank.cpu.parts_us.unknown == 20  # 15 + 5


def test_depth_counts_windows():
    """[0, 10) and [5, 15): over [-5, 20) 10 + 10; at 5 both; at 15 none."""
    depth = Depth(np.array([0, 5]), np.array([10, 15]))
    assert depth.within(np.array([-5, 4, 12]), np.array([20, 6, 13])).tolist() == [20, 1 + 2, 1]
    assert depth.at(np.array([-1, 0, 5, 10, 15])).tolist() == [0, 1, 2, 1, 0]
    nothing = Depth(np.empty(0, np.int64), np.empty(0, np.int64))
    assert nothing.within(np.array([-3, 0]), np.array([3, 9])).tolist() == [0, 0]


EVENT = st.tuples(
    st.sampled_from(["a", "b", "ncclKernel_x", "Memcpy HtoD", "Memset"]),
    st.integers(0, 300),
    st.integers(0, 60),
    st.integers(7, 10),
)


@settings(max_examples=80)
@given(st.lists(EVENT, min_size=1, max_size=25), st.lists(st.integers(0, 250), max_size=4))
def test_groups_add_up_to_the_parts(events: list[tuple[str, int, int, int]], steps: list[int]):
    kinds = {"Memcpy HtoD": "gpu_memcpy", "Memset": "gpu_memcpy"}
    rank = analysed([
        *(row(kinds.get(name, "kernel"), name, ts, dur, stream) for name, ts, dur, stream in events),
        *(row("user_annotation", f"ProfilerStep#{n}", ts, 70) for n, ts in enumerate(steps)),
    ])  # fmt: skip
    whole, in_steps = rank.parts_us["0"], [s.parts_us or Parts() for s in rank.steps]
    for part in WORK:
        rows = [k for k in rank.kernels if part_of(k) == part]
        assert sum(ns(k.exclusive_us) for k in rows) == ns(getattr(whole, part))
        if steps:
            assert sum(ns(k.steps_exclusive_us) for k in rows) == sum(ns(getattr(s, part)) for s in in_steps)
    for k in rank.kernels:
        assert ns(k.exclusive_us) <= ns(k.time_us)
