"""The work of steps by number type and origin (rooflight/results/work.py).

A product [4096, 4096] x [4096, 4096] in bf16 is 2 x 4096^3 FLOPs and 3 x 4096^2 x 2 bytes; an addition of two
[1024, 1024] in fp32 is 1024^2 FLOPs and 3 x 1024^2 x 4 bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

from rooflight.protocol import Step, StepWork, decode, encode
from rooflight.results.work import _sums
from tests.recording import Recording

SQUARE, BF16 = [[4096, 4096], [4096, 4096]], "c10::BFloat16"
MM_FLOPS, MM_BYTES = 2 * 4096**3, 3 * 4096**2 * 2
ADD_FLOPS, ADD_BYTES = 1024**2, 3 * 1024**2 * 4
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def product(scene: Recording, at: float, start: float, dur: float) -> Recording:
    return scene.op("aten::mm", at, SQUARE, BF16).kernel("gemm_bf16", at + 1, start, dur)


def addition(scene: Recording, at: float, start: float, dur: float) -> Recording:
    return scene.op("aten::add", at, [[1024, 1024], [1024, 1024], []]).kernel(ADD, at + 1, start, dur)


def by_type(step: Step) -> dict[str | None, StepWork]:
    return {w.dtype: w for w in step.work}


def test_work_is_summed_by_number_type() -> None:
    scene = Recording().step(0, 0, 1000)
    product(scene, 0, 2, 300)
    product(scene, 10, 310, 200)
    addition(scene, 20, 600, 50)
    (step,) = scene.rank().steps
    work = by_type(step)
    assert set(work) == {"bf16", "fp32"}
    assert (work["bf16"].flops, work["bf16"].bytes) == (2 * MM_FLOPS, 2 * MM_BYTES)
    assert (work["bf16"].time_us, work["bf16"].count, work["bf16"].matrix) == (500, 2, True)
    assert (work["fp32"].flops, work["fp32"].bytes) == (ADD_FLOPS, ADD_BYTES)
    assert (work["fp32"].time_us, work["fp32"].count, work["fp32"].matrix) == (50, 1, False)
    assert {w.origin for w in step.work} == {"modelled"}
    assert step.work_of_us == 550


def test_a_kernel_of_unknown_cost_counts_in_the_time_alone() -> None:
    scene = product(Recording().step(0, 0, 1000), 0, 2, 300)
    scene.op("mine::fused", 10).kernel("my_fused", 11, 400, 100)
    (step,) = scene.rank().steps
    assert [(w.dtype, w.time_us) for w in step.work] == [("bf16", 300)]
    assert step.work_of_us == 400  # 300 + 100


def test_copies_and_communication_are_no_arithmetic() -> None:
    scene = product(Recording().step(0, 0, 1000), 0, 2, 300)
    scene.gpu("gpu_memcpy", "Memcpy HtoD", 10, 400, 100, bytes=1000)
    scene.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 600, 100)
    (step,) = scene.rank().steps
    assert step.work_of_us == 300


def test_a_kernel_belongs_to_the_step_in_which_it_starts() -> None:
    scene = product(Recording().step(0, 0, 1000).step(1, 1000, 1000), 0, 999, 300)
    addition(scene, 30, 1500, 50)
    first, second = scene.rank().steps
    assert (first.work_of_us, second.work_of_us) == (300, 50)
    assert list(by_type(first)) == ["bf16"]
    assert list(by_type(second)) == ["fp32"]


def test_steps_sum_to_the_table() -> None:
    """Of kernels that all start in steps."""
    scene = Recording()
    for i in range(4):
        scene.step(i, 1000 * i, 1000)
        product(scene, 1000 * i, 1000 * i + 2, 300)
        addition(scene, 1000 * i + 10, 1000 * i + 400, 50)
    rank = scene.rank()
    works = [w for s in rank.steps for w in s.work]
    assert (
        sum(w.flops for w in works) == sum(k.flops or 0 for k in rank.kernels) == 4 * (MM_FLOPS + ADD_FLOPS)
    )
    assert sum(w.bytes for w in works) == sum(k.bytes or 0 for k in rank.kernels)
    bound = sum(k.bound_us or 0 for k in rank.kernels)
    assert sum(w.bound_us or 0 for w in works) == pytest.approx(
        bound, abs=10 * 0.0005
    )  # each is rounded to 1 ns


def test_without_a_roof_the_bound_is_unknown() -> None:
    nameless = {"id": 0, "name": "Some Device"}
    (step,) = product(Recording(nameless).step(0, 0, 1000), 0, 2, 300).rank().steps
    assert [w.bound_us for w in step.work] == [None]


def test_sums_beyond_two_to_the_63_are_exact() -> None:
    values = np.full(5, (1 << 63) - 1, np.int64)
    low, high = np.array([0, 1, 3]), np.array([5, 1, 4])
    assert _sums(values, low, high) == [5 * (2**63 - 1), 0, 2**63 - 1]


def test_the_document_keeps_it() -> None:
    from rooflight import analyze

    document = analyze(product(Recording().step(0, 0, 1000), 0, 2, 300).timeline()).document
    assert decode(encode(document)) == document
    assert document.ranks[0].steps[0].work[0].flops == MM_FLOPS
