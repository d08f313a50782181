"""Identities that every analysis keeps (tests/identities.py), over random recordings and all shared ones."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import read
from rooflight.analysis import Options, analyze
from rooflight.calibration import Calibration
from rooflight.comparison import compare
from rooflight.comparison.document import ComparisonDocument
from rooflight.errors import Refused
from rooflight.protocol import Ceiling, Document, decode, encode
from rooflight.roofline.columns import least
from rooflight.scenarios import Scenario, WhatIf, whatif
from rooflight.scenarios.rows import works_of
from tests.drawing import timeline_from_events
from tests.identities import WORK, broken, ns, total
from tests.recording import H100, V100, Event
from tests.shared import missing_traces, traces_dir

#: µs with three decimals: most on a coarse grid, so that borders meet, and lengths of nothing are common.
INSTANT = st.one_of(st.integers(0, 60).map(float), st.integers(0, 60_000).map(lambda n: n / 1000))
LENGTH = st.one_of(st.integers(0, 25).map(float), st.integers(0, 25_000).map(lambda n: n / 1000))
KERNELS = (
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, 2>(int)",
    "void at::native::elementwise_kernel<128, 2>(int)",
    "triton_poi_fused_add_0",
    "k",
)
COPIES = {
    "gpu_memcpy": ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)", "Memcpy PtoP"),
    "gpu_memset": ("Memset (Device)",),
}
CALLS = ("cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cuLaunchKernelEx", "hipLaunchKernel")
HOST = (
    ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    ("user_annotation", "Optimizer.step#SGD.step"),
    ("cuda_runtime", "cudaDeviceSynchronize"),
    ("cpu_op", "aten::item"),
    ("cpu_op", "aten::mm"),
    ("cpu_op", "aten::add"),
    ("cpu_op", "aten::copy_"),
)
MM = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}


def _event(cat: str, name: str, ts: float, dur: float, pid: int, tid: int, **args: Any) -> Event:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args,
    }  # fmt: skip


@st.composite
def _work(draw: Any) -> list[Event]:
    """GPU work with its launch, without one, or several of one graph; on one of two devices."""
    cat = draw(st.sampled_from(("kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset")))
    names = (*KERNELS, *KERNELS[:1] * 3) if cat == "kernel" else COPIES[cat]
    name = draw(st.sampled_from(names))
    device, stream = draw(st.integers(0, 1)), draw(st.sampled_from((7, 20)))
    link = draw(st.integers(1, 12))
    args: Event = {"device": device, "stream": stream, "context": 1, "correlation": link}
    if draw(st.booleans()):
        args |= {"graph node id": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        args |= {"bytes": draw(st.integers(0, 10**9)), "grid": [draw(st.integers(1, 400)), 1, 1]}
    events = [_event(cat, name, draw(INSTANT), draw(LENGTH), device, stream, **args)]
    if draw(st.booleans()):
        call = draw(st.sampled_from(CALLS))
        events.append(
            _event("cuda_runtime", call, draw(INSTANT), draw(LENGTH), 9, draw(THREAD), correlation=link)
        )
    return events


@st.composite
def _costed(draw: Any) -> list[Event]:
    """An op whose work is known, from the call to the kernel."""
    at, late, link = draw(INSTANT), draw(st.integers(1, 9)), draw(st.integers(100, 1000))
    rows = draw(st.sampled_from((8, 4096, 65_536)))
    name, op, dims = draw(
        st.sampled_from(
            (
                (KERNELS[1], "aten::mm", [[rows, 2048], [2048, 2048]]),
                (KERNELS[2], "aten::add", [[rows, 512], [rows, 512], []]),
                (KERNELS[3], "aten::copy_", [[rows, 512], [rows, 512], []]),
            )
        )
    )
    inputs = {"Input Dims": dims, "Input type": ["c10::BFloat16" if d else "Scalar" for d in dims]}
    args = {"device": draw(st.integers(0, 1)), "stream": 7, "context": 1, "correlation": link}
    return [
        _event("cpu_op", op, at, 4.0, 9, 1, **inputs),
        _event("cuda_runtime", "cudaLaunchKernel", at + 1, 1.0, 9, 1, correlation=link),
        _event("kernel", name, at + late, draw(LENGTH), args["device"], 7, **args),
    ]


THREAD = st.sampled_from((1, 1, 2))
HOST_ROW = st.builds(
    lambda what, at, dur, thread: [_event(*what, at, dur, 9, thread, **(MM if "aten" in what[1] else {}))],
    st.sampled_from(HOST),
    INSTANT,
    LENGTH,
    THREAD,
)
#: Steps may overlap, have one number twice, be of two threads, last no time, or not be there.
STEP = st.builds(
    lambda n, at, dur, thread: [_event("user_annotation", f"ProfilerStep#{n}", at, dur, 9, thread)],
    st.integers(0, 3),
    INSTANT,
    LENGTH,
    THREAD,
)


def _recordings(*kinds: st.SearchStrategy[list[Event]], most: int = 25) -> st.SearchStrategy[list[Event]]:
    rows = st.lists(st.one_of(*kinds), min_size=1, max_size=most)
    return rows.map(lambda several: [event for one in several for event in one])


ANY = _recordings(_work(), _costed(), HOST_ROW, STEP)
COSTED = _recordings(_costed(), STEP)
MOVING = _recordings(_work(), STEP, most=12)
WITHOUT_STEPS = _recordings(_work(), _costed(), HOST_ROW)
ON_CPU = _recordings(HOST_ROW, STEP)


def analysed(events: list[Event], device: Event = H100) -> Document | None:
    """``None`` where there is nothing to analyse."""
    properties = [device, device | {"id": 1}]
    try:
        return analyze(timeline_from_events(events, deviceProperties=properties)).document
    except Refused:
        return None


@settings(max_examples=150)
@given(st.one_of(ANY, COSTED, MOVING, WITHOUT_STEPS, ON_CPU))
def test_every_identity_holds(events: list[Event]) -> None:
    document = analysed(events)
    assert document is None or broken(document) == []


@st.composite
def _rounds(draw: Any) -> list[Event]:
    """A loop of launches that nobody marked, whose rounds can be told."""
    events, at = [], 0.0
    length = draw(st.integers(2, 6))
    widths = [draw(st.integers(1, 9)) for _ in range(length)]
    for turn in range(draw(st.integers(4, 9))):
        for i, width in enumerate(widths):
            link = 1 + turn * length + i
            events.append(_event("cuda_runtime", "cudaLaunchKernel", at, 1.0, 9, 1, correlation=link))
            args = {"device": 0, "stream": 7 + 13 * (i % 2), "context": 1, "correlation": link}
            events.append(_event("kernel", f"{KERNELS[i % 5]}{i}", at + 2, float(width), 0, 7, **args))
            at += draw(st.integers(1, 12))
        if draw(st.booleans()):
            events.append(_event("user_annotation", "Optimizer.step#SGD.step", at, 1.0, 9, 1))
            at += 2
    return events


@settings(max_examples=60)
@given(_rounds())
def test_every_identity_holds_for_steps_that_nobody_marked(events: list[Event]) -> None:
    document = analysed(events)
    assert document is not None
    assert broken(document) == []
    assert document.ranks[0].steps == []


TRACES = [] if missing_traces() else sorted(json.loads((traces_dir() / "TRUTH.json").read_text()))


@cache
def recorded(file: str) -> Document:
    return decode(encode(analyze(read(traces_dir() / file)).document))


@pytest.mark.traces
@pytest.mark.parametrize("file", TRACES)
def test_every_identity_holds_of_recordings(file: str) -> None:
    document = recorded(file)
    assert broken(document) == []
    same(document)
    if any(d.n_gpu_events for d in document.ranks[0].devices.values()):
        no_slower_on_a_better_device(document)


@pytest.mark.traces
@pytest.mark.parametrize("files", ["dlrm_8ranks/*.json", "hta/sampled_rank*of128.json.gz"])
def test_every_identity_holds_of_ranks_together(files: str) -> None:
    """Waits and transfers too, which only several ranks tell; in whatever order their files come."""
    several = [read(p) for p in sorted(traces_dir().glob(files))]
    document = analyze(several).document
    assert broken(document) == []
    assert all(s.wait_us is not None for r in document.ranks for s in r.steps)
    same(document)
    assert analyze(several[::-1]).document.ranks == document.ranks


# --- two runs --------------------------------------------------------------------------------------


def same(document: Document) -> None:
    """A run against itself differs nowhere, in the JSON either."""
    c = compare(document, document).document
    rows = [c.total, *c.parts.values()]
    assert {r.difference_us for r in rows} == {0.0}
    assert {r.significance for r in rows} <= {"within_noise", "cannot_say"}
    for k in c.kernels:
        assert (k.match, k.difference_us, k.count_effect_us, k.duration_effect_us) == ("same", 0, 0, 0)
    assert set(c.rest_us.values()) <= {0.0}


def comparable_with(a: Document, b: Document) -> bool:
    return all(any(r.parts_us or r.cpu for r in d.ranks) for d in (a, b))


@settings(max_examples=60)
@given(st.one_of(ANY, COSTED, MOVING, WITHOUT_STEPS), st.one_of(ANY, WITHOUT_STEPS, ON_CPU))
def test_a_comparison_adds_up_and_turns_around(one: list[Event], other: list[Event]) -> None:
    a, b = analysed(one), analysed(other)
    if a is None or b is None or not comparable_with(a, b):
        return
    same(a)
    c, back = compare(a, b), compare(b, a)
    assert sum(x.difference for x in c.parts.values()) == c.total.difference == -back.total.difference
    assert {p: -x.difference for p, x in back.parts.items()} == {p: x.difference for p, x in c.parts.items()}
    by_part: dict[str, Any] = defaultdict(int)
    for g in c.groups:
        for p, difference in g.by_part.items():
            by_part[p] += difference
    assert {p: by_part[p] for p in WORK} == {p: c.parts[p].difference for p in WORK}
    assert set(c.rest.values()) == {0}, "every instant of work is some row's"
    printed(c.document, back.document)


def printed(c: ComparisonDocument, back: ComparisonDocument) -> None:
    """What is printed adds up too, to the last digit, in both directions."""
    for side in ("a_us", "b_us", "difference_us"):
        assert sum(ns(getattr(x, side)) for x in c.parts.values()) == ns(getattr(c.total, side))
    assert ns(c.total.difference_us) == ns(c.total.b_us) - ns(c.total.a_us) == -ns(back.total.difference_us)
    assert [-ns(k.difference_us) for k in back.kernels] == [ns(k.difference_us) for k in c.kernels]
    for p in WORK:
        rows = sum(ns(k.parts_us.get(p, 0)) for k in c.kernels)
        assert rows + ns(c.rest_us[p]) == ns(c.parts[p].difference_us)
    for k in c.kernels:
        assert ns(k.count_effect_us) + ns(k.duration_effect_us) == ns(k.difference_us)
        assert sum(map(ns, k.parts_us.values())) == ns(k.difference_us)


# --- another device --------------------------------------------------------------------------------


def faster(document: Document, times: float) -> Document:
    """The same with every roof ``times`` as high; verdicts as they were."""
    other = decode(encode(document))
    for roofs in (r for rank in other.ranks for r in rank.roofs.values()):
        for c in (*roofs.compute.values(), *roofs.vector.values(), roofs.memory, roofs.link, roofs.pcie):
            if isinstance(c, Ceiling) and c.practical is not None:
                c.practical *= times
    return other


def no_slower_on_a_better_device(document: Document) -> None:
    """Higher roofs never raise a bound; and on an H200, whose practical roofs are those of an H100 or
    higher, no known row of an H100 takes longer."""
    rank, higher = document.ranks[0], faster(document, 2.0).ranks[0]
    for device in rank.roofs:
        works = works_of([k for k in rank.kernels if k.device == device])
        a, b = (least(works, r.roofs[device]).ns for r in (rank, higher))
        assert ((b <= a) | (np.isnan(a) & np.isnan(b))).all()
    if {r.gpu_id for r in rank.roofs.values()} == {"h100-sxm"}:
        moved(whatif(document, "h200-sxm"), document)


def moved(w: WhatIf, document: Document) -> None:
    for k in w.per_kernel:
        if k.known and k.kind == "kernel" and k.regime in ("compute", "memory"):
            assert k.predicted_us.mid <= k.time_us + 0.001
    for s in w.steps:
        assert 0 <= s.predicted_us.low <= s.predicted_us.mid <= s.predicted_us.high


@settings(max_examples=60)
@given(st.one_of(ANY, COSTED, MOVING, WITHOUT_STEPS))
def test_a_better_device_is_no_slower(events: list[Event]) -> None:
    document = analysed(events)
    if document is not None and any(d.n_gpu_events for d in document.ranks[0].devices.values()):
        no_slower_on_a_better_device(document)


@settings(max_examples=25)
@given(st.one_of(ANY, COSTED, MOVING, WITHOUT_STEPS), st.floats(1.0, 4.0))
def test_higher_roofs_raise_neither_bound_nor_attainable(events: list[Event], times: float) -> None:
    """A calibration that tells ``times`` the rates of another: every step's bounds fall, or stay.  A row
    that its roof held (unknown to no verdict) may become ``unknown``, which then has all of its time: only
    recordings whose rows keep their verdicts are held to it."""
    slow, fast = (calibrated(events, t) for t in (1.0, times))
    if slow is None or fast is None:
        return
    one, other = slow.ranks[0], fast.ranks[0]
    if [k.regime for k in one.kernels] != [k.regime for k in other.kernels]:
        return
    for a, b in zip([*one.steps, *one.inferred_steps], [*other.steps, *other.inferred_steps], strict=True):
        if a.bound_us is not None and b.bound_us is not None:
            assert b.bound_us <= a.bound_us
            assert (b.attainable_us or 0) <= (a.attainable_us or 0)


def calibrated(events: list[Event], times: float) -> Document | None:
    rates = {"bf16": 10.0 * times, "fp32": 5.0 * times}
    calibration = Calibration(
        device="NVIDIA H100 80GB HBM3", kind="gpu", measured_at="2026-01-01T00:00:00Z", gemm_tflops=rates,
        vector_tflops=rates, stream_gbs=100.0 * times,
    )  # fmt: skip
    try:
        timeline = timeline_from_events(events, deviceProperties=[H100, H100 | {"id": 1}])
        return analyze(timeline, options=Options(calibrations=(calibration,))).document
    except Refused:
        return None


SCENARIOS = st.builds(
    Scenario,
    dtype=st.sampled_from((None, "bf16", "fp8", "fp4", "fp32")),
    roofs_reached=st.booleans(),
    fused=st.booleans(),
    overlapped=st.booleans(),
    input_ready=st.booleans(),
)
GPUS = st.sampled_from(("h100-sxm", "mi300x", "v100-sxm2-32", "b200", "l4", None))


@settings(max_examples=80)
@given(
    st.one_of(ANY, COSTED, MOVING, WITHOUT_STEPS), SCENARIOS, GPUS, st.sampled_from((H100, V100, {"id": 0}))
)
def test_a_forecast_is_in_order_and_what_nothing_changes_stays(
    events: list[Event], scenario: Scenario, gpu: str | None, device: Event
) -> None:
    document = analysed(events, device)
    if document is None or not any(d.n_gpu_events for d in document.ranks[0].devices.values()):
        return
    w = whatif(document, gpu, scenario)
    for r in (w.kernel_time_us, w.step_time_us, w.recording_us, *(s.predicted_us for s in w.steps)):
        assert r is None or 0 <= r.low <= r.mid <= r.high
    rank = document.ranks[0]
    as_recorded = whatif(document)
    assert as_recorded.kernel_time_us.mid == pytest.approx(
        sum(k.time_us for k in rank.kernels if k.kind == "kernel"), abs=0.001
    )
    for s, row in zip(as_recorded.steps, rank.steps or rank.inferred_steps, strict=True):
        assert row.parts_us is not None
        assert ns(s.predicted_us.mid) == total(row.parts_us) == ns(row.step_time_us)
