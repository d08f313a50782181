"""Idle gaps one by one: their causes are the partition's, and what explains them was open then."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.analysis import Analysis, analyze
from rooflight.attribution.idle import CAUSES
from rooflight.protocol import Idle
from rooflight.results.idle import MAX_ROWS
from tests.drawing import timeline_from_events
from tests.recording import Recording
from tests.rooflight.test_partition import STEP, build, event, scene


def rows(analysis: Analysis) -> list[Idle]:
    return analysis.document.ranks[0].idle


def told(analysis: Analysis) -> dict[tuple[str, str | None], tuple[int, float]]:
    """Count and time by cause and frame."""
    return {(r.cause, r.frame): (r.count, r.time_us) for r in rows(analysis) if not r.rest}


def exact(us: float) -> int:
    return round(us * 1000)


def mixed() -> Analysis:
    """[0, 60) idle: input [0, 20), sync [20, 30), an op [30, 40), nothing [40, 50), from the launch at 50
    to the start at 60 the way to the device; after the kernel, [90, 100), nothing again."""
    return analyze(
        scene(
            step=STEP,
            feed=("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 20),
            wait=("cuda_runtime", "cudaStreamSynchronize", 20, 10),
            op=("cpu_op", "aten::foo", 30, 10),
            call_1=("cuda_runtime", "cudaLaunchKernel", 50, 2),
            kernel_1=("kernel", "k", 60, 30),
        )
    )


def test_each_cause_of_a_gap_is_told_with_what_was_open() -> None:
    """Nothing is open in [40, 50) and [90, 100): two gaps have some of it; the kernel has no op, its name
    stands for it."""
    assert told(mixed()) == {
        ("input", "enumerate(DataLoader)#_Iter.__next__"): (1, 20),
        ("sync", "cudaStreamSynchronize"): (1, 10),
        ("dispatch", "aten::foo"): (1, 10),
        ("host", None): (2, 10 + 10),
        ("launch", "k"): (1, 10),
    }


def test_the_longest_stretch_is_told_with_its_start_and_its_step() -> None:
    """Both stretches of the host are 10 us: the first of them, at 40, counts."""
    [host] = [r for r in rows(mixed()) if r.cause == "host"]
    assert (host.device, host.longest_us, host.longest_start_us, host.step) == ("0", 10, 40, 1)


def test_a_gap_is_a_row_of_the_frame() -> None:
    """[0, 60) ends with k, [90, 100) with nothing."""
    pytest.importorskip("pandas")
    first, last = mixed().gaps.to_dict("records")
    assert (first["start_ns"], first["dur_ns"], first["ended_by"], first["op"]) == (0, 60_000, "k", "")
    assert {c: first[f"{c}_ns"] for c in CAUSES} == {
        "input": 20_000, "sync": 10_000, "dispatch": 10_000, "host": 10_000, "launch": 10_000,
        "dependency": 0, "unknown_idle": 0,
    }  # fmt: skip
    assert (first["cause"], first["frame"]) == ("input", "enumerate(DataLoader)#_Iter.__next__")
    assert (last["start_ns"], last["dur_ns"], last["cause"], last["ended_by"]) == (90_000, 10_000, "host", "")
    assert (last["first_step"], last["last_step"], last["frame"]) == (1, 1, "")


def test_a_device_that_never_waits_has_no_gaps() -> None:
    """One kernel is all there is: the recording begins and ends with it."""
    columns = analyze(Recording().kernel("k", 0, 0, 40).timeline()).idle[0]
    assert {name: len(column) for name, column in columns.items()} == dict.fromkeys(columns, 0)
    assert {"start_ns", "dur_ns", "cause", *(f"{c}_ns" for c in CAUSES)} <= columns.keys()


def test_a_call_is_told_with_the_op_around_it() -> None:
    """The wait [10, 40) is a call inside aten::item [8, 41): of the gap [0, 60) it is sync [8, 41), of
    which the call is open for 30 of 33."""
    recording = (
        Recording()
        .step(1, 0, 100)
        .host("aten::item", 8, 33)
        .host("cudaStreamSynchronize", 10, 30, cat="cuda_runtime")
        .kernel("k", 50, 60, 40)
    )
    assert told(analyze(recording.timeline()))[("sync", "cudaStreamSynchronize in aten::item")] == (1, 33)


def test_many_small_ops_are_told_as_what_is_around_them() -> None:
    """Ten ops of 2 us, 1 us apart, in an annotation [0, 31): each is open for 2 of 31 us, it for all."""
    recording = Recording().step(1, 0, 100).host("Optimizer.step#SGD.step", 0, 31, cat="user_annotation")
    for i in range(10):
        recording.host(f"aten::op{i}", 1 + 3 * i, 2)
    recording.kernel("k", 50, 60, 40)
    assert told(analyze(recording.timeline()))[("dispatch", "Optimizer.step#SGD.step")] == (1, 31)


def test_without_anything_around_them_the_op_in_the_middle_speaks_for_them() -> None:
    """[0, 30) is three ops end to end; the middle, 15, is in the second."""
    recording = Recording().step(1, 0, 100)
    for i, name in enumerate("abc"):
        recording.host(f"aten::{name}", 10 * i, 10)
    recording.kernel("k", 50, 60, 40)
    assert told(analyze(recording.timeline()))[("dispatch", "aten::b")] == (1, 30)


def test_the_python_stack_explains_what_no_op_does() -> None:
    """[0, 50) is no op: sleep is open for 40 of 50, in a line of train.py."""
    recording = (
        Recording()
        .step(1, 0, 100)
        .host("train.py(12): wait", 0, 50, cat="python_function")
        .host("<built-in function sleep>", 5, 40, cat="python_function")
        .kernel("k", 50, 60, 40)
    )
    [host] = [r for r in rows(analyze(recording.timeline())) if r.cause == "host"]
    assert (host.frame, host.python, host.time_us) == ("<built-in function sleep>", "train.py(12): wait", 50)


def test_a_queued_kernel_is_told_by_its_op() -> None:
    """The kernels of both ops are launched before 10; [20, 40) waits for something else."""
    recording = (
        Recording()
        .step(1, 0, 60)
        .op("aten::first", 0)
        .kernel("a", 1, 10, 10)
        .op("aten::second", 4)
        .kernel("b", 5, 40, 20)
    )
    assert told(analyze(recording.timeline()))[("dependency", "aten::second")] == (1, 20)


def many(n: int) -> Recording:
    """n gaps of 20 us of as many ops, each before its kernel of 10 us; the op is open for 10 + i/10 us of
    its gap, which then goes on with the launch."""
    recording = Recording().step(1, 0, 30 * n)
    for i in range(n):
        recording.host(f"aten::op{i}", 30 * i, 10 + i / 10)
        recording.kernel(f"k{i}", 30 * i + 15, 30 * i + 20, 10)
    return recording


def test_what_is_not_named_is_one_row_of_its_cause() -> None:
    """60 ops and 60 kernels whose ops are unknown: 40 rows, and the rest by cause.  Of dispatch, 10 to
    15.9 us each, the 40 longest are named (12.0 to 15.9); 20 are left, 10.0 to 11.9: 200 + 19 = 219 us.
    All launches are left, 60 of 5 us, and what is neither op nor launch: 5 - i/10 us each, of which those
    of 50 gaps exceed 0: one row of 125 + 2.5 us, which is named in place of the op of 12.0 us."""
    found = rows(analyze(many(60).timeline()))
    named, rest = [r for r in found if not r.rest], {r.cause: r for r in found if r.rest}
    assert len(named) == MAX_ROWS
    assert Counter(r.cause for r in named) == {"dispatch": 39, "host": 1}
    assert (rest["dispatch"].count, rest["dispatch"].time_us) == (21, 219 + 12)
    assert rest["dispatch"].longest_us == 12
    assert rest["launch"].count == 60


def test_rows_are_the_same_in_any_order_of_the_file() -> None:
    one, other = (rows(analyze(r.timeline())) for r in (many(60), many(60).shuffled(3)))
    assert one == other


def test_a_gap_over_two_steps_is_one_gap_that_both_count() -> None:
    """Steps [0, 50) and [50, 100); k ends at 20, the next launch is at 80: the gap [20, 82) is host until
    80, 30 us of it in each step."""
    recording = Recording().step(1, 0, 50).step(2, 50, 50).kernel("k", 0, 5, 15).kernel("k", 80, 82, 18)
    analysis = analyze(recording.timeline())
    [host] = [r for r in rows(analysis) if r.cause == "host"]
    assert (host.count, host.time_us, host.longest_us, host.step) == (1, 60, 60, 1)
    gap = analysis.idle[0]
    at = gap["start_ns"].tolist().index(20_000)
    assert (gap["dur_ns"][at], gap["first_step"][at], gap["last_step"][at]) == (62_000, 1, 2)


def test_time_outside_of_steps_is_in_the_gaps_and_not_in_the_rows() -> None:
    """The step is [0, 50), the kernels run over [5, 20) and [82, 100): of the gap [20, 82) 30 us count."""
    analysis = analyze(Recording().step(1, 0, 50).kernel("k", 0, 5, 15).kernel("k", 80, 82, 18).timeline())
    assert told(analysis)[("host", None)] == (1, 30)
    assert analysis.idle[0]["dur_ns"].tolist() == [5_000, 62_000]


def test_a_recording_without_gpu_work_has_no_gaps() -> None:
    analysis = analyze(Recording().step(1, 0, 50).host("aten::foo", 0, 50).timeline())
    assert rows(analysis) == []
    assert analysis.idle[0] == {}


@settings(max_examples=80, deadline=None)
@given(st.lists(event, min_size=1, max_size=25))
def test_rows_and_gaps_add_up_to_the_parts_exactly(events: list[tuple[str, int, int, int]]) -> None:
    analysis = analyze(build(events))
    rank, gaps = analysis.document.ranks[0], analysis.idle[0]
    if not rank.devices:
        return
    for cause in CAUSES:
        of_steps = sum(exact(getattr(s.parts_us, cause)) for s in rank.steps if s.parts_us)
        assert sum(exact(r.time_us) for r in rank.idle if r.cause == cause) == of_steps
        assert sum(gaps[f"{cause}_ns"].tolist()) == exact(getattr(rank.parts_us["0"], cause))
    assert sum(gaps[f"{c}_ns"] for c in CAUSES).tolist() == gaps["dur_ns"].tolist()
    assert all(r.longest_us is not None and r.longest_us <= r.time_us for r in rank.idle)


def test_a_gap_before_a_step_that_holds_another_is_of_the_outer_one() -> None:
    """Steps 1 [0, 100) and 2 [10, 20) inside it; of the gap [30, 80) only step 1 has any."""
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 9, "tid": 1, "ts": ts,
         "dur": dur} for n, ts, dur in ((1, 0, 100), (2, 10, 10))
    ]  # fmt: skip
    events += [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts, "dur": dur,
         "args": {"device": 0, "stream": 7}} for ts, dur in ((0, 30), (80, 20))
    ]  # fmt: skip
    gap = analyze(timeline_from_events(events)).idle[0]
    assert (gap["first_step"].tolist(), gap["last_step"].tolist()) == ([1], [1])
