"""Why kernels are faster than the datasheet allows (rooflight/results/above.py)."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import analyze
from rooflight.protocol import Rank
from rooflight.results.above import CACHE, CLOCK, TICKS, UNEXPLAINED, WINOGRAD
from tests.drawing import timeline_from_events

Event = dict[str, Any]
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
V100 = {"id": 0, "name": "Tesla V100-SXM2-16GB", "numSms": 80, "computeMajor": 7, "computeMinor": 0}


def row(cat: str, name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 9, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def analysed(device: Event, op: str, dims: list[Any], dtype: str, **kernels: float) -> Rank:
    """One op on contiguous tensors that launches these kernels, each of so many us."""
    types = [dtype if d else "" for d in dims]
    events = [row("cpu_op", op, 0, 100, **{"Input Dims": dims, "Input type": types})]
    now = 200.0
    for nth, (name, dur) in enumerate(kernels.items(), 1):
        where = {"device": 0, "stream": 7, "correlation": nth}
        events.append(row("cuda_runtime", "cudaLaunchKernel", nth, 0.5, correlation=nth))
        events.append(row("kernel", name, now, dur, pid=0, tid=7, **where))
        now += dur + 1
    return analyze(timeline_from_events(events, deviceProperties=[device])).document.ranks[0]


def cause(rank: Rank, name: str) -> str:
    (k,) = (k for k in rank.kernels if k.name == name)
    assert k.above_peak
    return k.cost_reason.partition("allows: ")[2]


def product(us: float) -> Rank:
    """2 x 8192^3 FLOPs in bf16: 1.0995e12 / 989.4e12 per s = 1111.3 us on an H100 at its datasheet's peak,
    which is stated at 1830 MHz; at the highest clock, 1980, it would take 1111.3 x 1830/1980 = 1027.1."""
    return analysed(H100, "aten::mm", [[8192, 8192], [8192, 8192]], "c10::BFloat16", gemm_bf16=us)


@pytest.mark.parametrize(("us", "why"), [(1_110.5, CLOCK), (1_040.5, CLOCK), (1_000.5, UNEXPLAINED)])
def test_a_higher_clock_explains_as_much_as_the_clock_is_higher(us: float, why: str) -> None:
    rank = product(us)
    assert cause(rank, "gemm_bf16") == why
    (flag,) = (f for f in rank.flags if f.code == "above_peak")
    assert (flag.count, flag.detail) == (1, f"kernel groups faster than the datasheet allows (1: {why})")


def test_what_the_datasheet_allows_needs_no_cause() -> None:
    rank = product(1_112.0)
    assert not rank.kernels[0].above_peak
    assert "above_peak" not in {f.code for f in rank.flags}


CONV = [[32, 64, 56, 56], [64, 64, 3, 3], [], [], [], [], [], [], []]


def convolution(*names: str) -> Rank:
    """A 3x3 convolution with recorded padding 1: 2 x 32 x 56 x 56 x 64 x 64 x 9 = 7.4e9 FLOPs, 471 us at the
    15.7 TFLOP/s of a V100; it takes 350.5."""
    concrete = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "True"]
    events = [
        row("cpu_op", "aten::cudnn_convolution", 0, 100, **{
            "Input Dims": CONV, "Input type": ["float", "float", *[""] * 7], "Concrete Inputs": concrete,
            "Input Strides": [[200704, 3136, 56, 1], [576, 9, 3, 1], *[[]] * 7]})
    ]  # fmt: skip
    for nth, name in enumerate(names, 1):
        events.append(row("cuda_runtime", "cudaLaunchKernel", nth, 0.5, correlation=nth))
        where = {"device": 0, "stream": 7, "correlation": nth}
        events.append(row("kernel", name, 200 + 400 * nth, 350.5 if nth == 1 else 5, pid=0, tid=7, **where))
    return analyze(timeline_from_events(events, deviceProperties=[V100])).document.ranks[0]


def test_winograd_is_known_by_its_own_name_or_by_the_kernels_beside_it() -> None:
    own = "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"
    assert cause(convolution(own), own) == WINOGRAD
    beside = "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>"
    assert cause(convolution("volta_sgemm_64x64_nn", beside), "volta_sgemm_64x64_nn") == WINOGRAD
    assert cause(convolution("volta_sgemm_64x64_nn"), "volta_sgemm_64x64_nn") == UNEXPLAINED


ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


@pytest.mark.parametrize(("elements", "us", "why"), [
    # 3 x 4 x 1,048,576 = 12.6 MB are 13.98 us at 900 GB/s, and the cache of 6 MiB may save 12.6 MB of them.
    (1 << 20, 10.5, CACHE),
    # 3 x 4 x 16,777,216 = 201.3 MB are 223.7 us; the cache saves 13.98 of them, to 209.7.
    (1 << 24, 210.5, CACHE),
    (1 << 24, 209.5, UNEXPLAINED),
    # Where time is counted in whole us, 209 may be 209.9.
    (1 << 24, 209.0, UNEXPLAINED),
    (1 << 24, 223.0, CACHE),
])  # fmt: skip
def test_the_cache_explains_twice_its_size(elements: int, us: float, why: str) -> None:
    rank = analysed(V100, "aten::add", [[elements], [elements], []], "float", **{ADD: us})
    assert cause(rank, ADD) == why


def test_a_recording_in_whole_microseconds_may_be_one_off() -> None:
    """2 x 2048^3 in fp16 are 17.18e9 FLOPs: 137.4 us at the 125 TFLOP/s of a V100."""
    rank = analysed(V100, "aten::mm", [[2048, 2048], [2048, 2048]], "c10::Half", gemm=137.0)
    assert cause(rank, "gemm") == TICKS
    rank = analysed(V100, "aten::mm", [[2048, 2048], [2048, 2048]], "c10::Half", gemm=137.1)
    assert cause(rank, "gemm") == UNEXPLAINED
