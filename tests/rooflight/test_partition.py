"""Where the time goes, on drawings whose parts can be read off (DEFINITIONS §16).

A kernel whose op is unknown has no cost, so its part is ``unknown``.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.analysis import analyze
from rooflight.protocol import PARTS, DeviceFigures, Rank, Step
from rooflight.report.summary import summarise
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events, timeline_from_text


def steps(timeline: Timeline) -> list[Step]:
    return analyze(timeline).document.ranks[0].steps


def parts(step: Step) -> dict[str, float]:
    assert step.parts_us is not None
    return {p: v for p in PARTS if (v := getattr(step.parts_us, p))}


def test_copy_under_a_matmul_is_hidden() -> None:
    """[0, 20) gemm and, from 5 to 15, the copy under it: nothing of the copy is exposed."""
    [step] = steps(
        timeline_from_text("""
        us         0    5    10   15   20
        thread 1   ProfilerStep#3======
        stream 7   gemm================
        stream 20       Memcpy====
        """)
    )
    assert parts(step) == {"unknown": 20}


def scene(**spans: tuple[str, str, float, float]) -> Timeline:
    """Events by (category, name, start, duration); GPU work and launches link by the same key."""
    events = []
    for i, (key, (cat, name, start, dur)) in enumerate(spans.items()):
        gpu = cat in ("kernel", "gpu_memcpy")
        number = int(key.rpartition("_")[2]) if key[-1].isdigit() else 1000 + i
        args = {"correlation": number} | ({"device": 0, "stream": 7, "context": 1} if gpu else {})
        events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 0 if gpu else 9, "tid": 7 if gpu else 1,
             "ts": start, "dur": dur, "args": args}
        )  # fmt: skip
    return timeline_from_events(events)


def step_event(dur: float) -> dict[str, Any]:
    return {
        "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 1, "ts": 0,
        "dur": dur,
    }  # fmt: skip


STEP = ("user_annotation", "ProfilerStep#1", 0, 100)


def test_a_gap_is_split_at_the_launch() -> None:
    """[0, 60) idle: input [0, 20), sync [20, 30), op [30, 40), nothing [40, 50), the launch call
    [50, 52) and the way to the device [52, 60) are both launch; after the kernel [60, 90) host 10."""
    timeline = scene(
        step=STEP,
        feed=("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 20),
        wait=("cuda_runtime", "cudaStreamSynchronize", 20, 10),
        op=("cpu_op", "aten::foo", 30, 10),
        call_1=("cuda_runtime", "cudaLaunchKernel", 50, 2),
        kernel_1=("kernel", "k", 60, 30),
    )
    [step] = steps(timeline)
    assert parts(step) == {
        "input": 20, "sync": 10, "dispatch": 10, "host": 10 + 10, "launch": 10, "unknown": 30,
    }  # fmt: skip


def test_a_queued_kernel_waits_for_something_else() -> None:
    """Both launched at 0 and 5; the gap [20, 40) is 20 µs: dependency; [50, 53) is the device's own."""
    timeline = scene(
        step=STEP,
        call_1=("cuda_runtime", "cudaLaunchKernel", 0, 1),
        call_2=("cuda_runtime", "cudaLaunchKernel", 5, 1),
        call_3=("cuda_runtime", "cudaLaunchKernel", 7, 1),
        kernel_1=("kernel", "a", 10, 10),
        kernel_2=("kernel", "b", 40, 10),
        kernel_3=("kernel", "c", 53, 47),
    )
    [step] = steps(timeline)
    assert parts(step) == {"launch": 10 + 3, "dependency": 20, "unknown": 10 + 10 + 47}


def test_a_kernel_without_a_launch_leaves_its_gap_unknown() -> None:
    timeline = scene(step=STEP, kernel_1=("kernel", "a", 30, 70))
    [step] = steps(timeline)
    assert parts(step) == {"unknown_idle": 30, "unknown": 70}


def test_a_pageable_copy_is_waited_for_while_its_call_is_open() -> None:
    """The call is open over [10, 60), the copy runs over [40, 60): [10, 40) is sync."""
    timeline = scene(
        step=STEP,
        call_1=("cuda_runtime", "cudaMemcpyAsync", 10, 50),
        copy_1=("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 40, 20),
    )
    [step] = steps(timeline)
    # [0, 10) and, after the copy, [60, 100): nothing is open on the step's thread.
    assert parts(step) == {"sync": 30, "copy": 20, "host": 10 + 40}


@pytest.mark.parametrize("order", [("kernel", "gpu_memcpy"), ("gpu_memcpy", "kernel")])
def test_of_one_launch_the_kernel_ends_the_gap_whatever_comes_first_in_the_file(
    order: tuple[str, str],
) -> None:
    """Kernel and pageable copy start together at 40 and have one launch at 10, which is open until 60: the
    copy would be waited for, the kernel is on its way from 10 to 40."""
    names = {"kernel": "k", "gpu_memcpy": "Memcpy HtoD (Pageable -> Device)"}
    gpu = {
        cat: {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7 + i, "ts": 40, "dur": 60,
              "args": {"correlation": 1, "device": 0, "stream": 7 + i}}
        for i, (cat, name) in enumerate(names.items())
    }  # fmt: skip
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1, "ts": 10,
            "dur": 50, "args": {"correlation": 1}}  # fmt: skip
    [step] = steps(timeline_from_events([step_event(100), call, *(gpu[cat] for cat in order)]))
    assert parts(step) == {"host": 10, "launch": 30, "unknown": 60}


def test_communication_and_copies_count_only_where_exposed() -> None:
    """all_reduce [10, 40) under the kernel [0, 20): 20 exposed; the copy [35, 60): 20 beyond both."""
    timeline = timeline_from_events(
        [
            step_event(60),
            *(
                {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": s, "ts": ts, "dur": dur,
                 "args": {"device": 0, "stream": s}}
                for cat, name, s, ts, dur in (
                    ("kernel", "gemm", 7, 0, 20),
                    ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, 10, 30),
                    ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 9, 35, 25),
                )
            ),
        ]
    )  # fmt: skip
    [step] = steps(timeline)
    assert parts(step) == {"unknown": 20, "communication": 20, "copy": 20}


def test_an_idle_step_of_a_busy_recording_is_listed() -> None:
    timeline = scene(
        one=("user_annotation", "ProfilerStep#1", 0, 50),
        two=("user_annotation", "ProfilerStep#2", 50, 50),
        call_1=("cuda_runtime", "cudaLaunchKernel", 10, 1),
        kernel_1=("kernel", "k", 12, 30),
    )
    rank = analyze(timeline).document.ranks[0]
    assert rank.steps_without_gpu == [2]
    # One of two is not more than half: no flag, and a verdict is given.
    assert "gpu_events_missing_in_steps" not in {f.code for f in rank.flags}


def test_steps_that_overlap_each_have_the_instants_of_both() -> None:
    """[0, 20) and [10, 30) share the kernel [12, 18): each has 6 µs of it and 14 of something else."""
    timeline = scene(
        one=("user_annotation", "ProfilerStep#1", 0, 20),
        two=("user_annotation", "ProfilerStep#2", 10, 20),
        again=("user_annotation", "ProfilerStep#2", 10, 20),
        call_1=("cuda_runtime", "cudaLaunchKernel", 11, 0.5),
        kernel_1=("kernel", "k", 12, 6),
    )
    found = steps(timeline)
    assert [s.n for s in found] == [1, 2, 2]
    for step in found:
        assert step.gpu_busy_in_window_us == 6
        assert parts(step)["unknown"] == 6
        assert sum(parts(step).values()) == step.step_time_us == 20


event = st.tuples(
    st.sampled_from(["kernel", "comm", "gpu_memcpy", "cpu_op", "call", "input", "sync"]),
    st.integers(0, 400),
    st.integers(0, 60),
    st.integers(1, 6),
)


def build(
    rows: list[tuple[str, int, int, int]], shift: float = 0, order: list[int] | None = None
) -> Timeline:
    names = {
        "comm": "ncclKernel_AllReduce", "kernel": "k", "gpu_memcpy": "Memcpy HtoD (Pageable -> Device)",
        "cpu_op": "aten::foo", "call": "cudaLaunchKernel", "input": "enumerate(DataLoader)#x",
        "sync": "aten::item",
    }  # fmt: skip
    cats = {"comm": "kernel", "call": "cuda_runtime", "input": "user_annotation", "sync": "cpu_op"}
    events = []
    for n, start in ((1, 50), (2, 180), (3, 333)):
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 9, "tid": 1,
             "ts": start + shift, "dur": 130}
        )  # fmt: skip
    for kind, start, dur, link in rows:
        gpu = kind in ("kernel", "comm", "gpu_memcpy")
        args = {"correlation": link} | ({"device": 0, "stream": 7 + link % 3} if gpu else {})
        events.append(
            {"ph": "X", "cat": cats.get(kind, kind), "name": names[kind], "pid": 0 if gpu else 9,
             "tid": 7 if gpu else 1 + (link == 2), "ts": start + shift, "dur": dur, "args": args}
        )  # fmt: skip
    if order:
        events = [e for _, e in sorted(zip(order, events, strict=False), key=lambda p: p[0])]
    return timeline_from_events(events)


@settings(max_examples=60)
@given(st.lists(event, min_size=1, max_size=25))
def test_parts_sum_to_the_wall_time_exactly_and_bounds_nest(rows: list[tuple[str, int, int, int]]) -> None:
    rank = analyze(build(rows)).document.ranks[0]
    for step in rank.steps:
        if step.parts_us is None:
            continue
        got = parts(step)
        assert round(sum(got.values()) * 1000) == round(step.step_time_us * 1000)
        kernel = sum(got.get(p, 0) for p in ("compute", "memory", "latency", "unknown"))
        assert 0 <= step.bound_us <= step.attainable_us <= kernel <= step.step_time_us
        assert got.get("communication", 0) <= sum(d.comm_us for d in rank.devices.values())
    for d in rank.devices.values():
        whole = d.compute_us + d.exposed_comm_us + d.exposed_mem_us + d.idle_us
        assert round(whole * 1000) == round(d.span_us * 1000)
        assert d.exposed_comm_us <= d.comm_us


@settings(max_examples=60)
@given(st.lists(event, min_size=1, max_size=15), st.integers(0, 10**9), st.randoms())
def test_shifting_time_and_shuffling_events_change_nothing(
    rows: list[tuple[str, int, int, int]], shift: int, random: object
) -> None:
    order = list(range(len(rows) + 3))
    random.shuffle(order)  # type: ignore[attr-defined]
    one, other = (analyze(t).document.ranks[0] for t in (build(rows), build(rows, shift, order)))
    assert [s.parts_us for s in one.steps] == [s.parts_us for s in other.steps]
    assert one.devices == other.devices
    assert [s.regime for s in one.steps] == [s.regime for s in other.steps]


def test_two_devices_have_parts_each_and_the_busier_one_leads() -> None:
    """Device 1 has 40 µs of kernels, device 0 has 10: device 1 is the headline."""
    events = [
        step_event(100),
        *(
            {"ph": "X", "cat": "kernel", "name": "k", "pid": d, "tid": 7, "ts": 20, "dur": dur,
             "args": {"device": d, "stream": 7}}
            for d, dur in ((0, 10), (1, 40))
        ),
    ]  # fmt: skip
    [step] = steps(timeline_from_events(events))
    assert step.device == "1"
    assert step.parts_us is not None
    assert step.parts_us.unknown == 40
    assert step.devices["0"].unknown == 10


@pytest.mark.parametrize(
    "name", ["enumerate(DataLoader)#X.__next__", "DataLoader.__next__", "## load_batch ##"]
)
def test_only_whole_names_or_prefixes_are_input(name: str) -> None:
    timeline = scene(
        step=STEP,
        feed=("user_annotation", name, 0, 20),
        other=("user_annotation", "my " + name, 20, 20),
        call_1=("cuda_runtime", "cudaLaunchKernel", 40, 1),
        kernel_1=("kernel", "k", 45, 55),
    )
    [step] = steps(timeline)
    assert parts(step) == {"input": 20, "dispatch": 20, "launch": 5, "unknown": 55}


def test_without_steps_the_parts_of_the_recording_are_those_of_the_busier_device() -> None:
    """[0, 10) a kernel of device 0, [0, 40) one of device 1: 40 µs are recorded, all of them work."""
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": d, "tid": 7, "ts": 0, "dur": dur,
         "args": {"device": d, "stream": 7}}
        for d, dur in ((0, 10), (1, 40))
    ]  # fmt: skip
    rank = analyze(timeline_from_events(events)).document.ranks[0]
    assert rank.headline == "1"
    said = summarise(rank).parts
    assert said is not None
    assert (said.unknown, said.unknown_idle) == (40, 0)


@pytest.mark.parametrize(
    ("sums", "want"), [({"2": 5, "10": 5}, "2"), ({"0": 1, "1": 2}, "1"), ({"0": 0.0}, "0"), ({}, None)]
)
def test_of_devices_as_busy_the_lowest_leads(sums: dict[str, float], want: str | None) -> None:
    def device(kernel_sum_us: float) -> DeviceFigures:
        return DeviceFigures("X", 1, 1, 0, 0, 0, None, kernel_sum_us, 0, 0, 0, 0, None, 0, 0, 0)

    assert Rank(0, "usable", devices={key: device(us) for key, us in sums.items()}).headline == want
