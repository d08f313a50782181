"""MFU and HFU of steps (rooflight/results/utilisation.py).

A product [4096, 4096] x [4096, 4096] is 2 x 4096^3 = 137,438,953,472 FLOPs: 13.891 % of the 989.4e12 x 1 ms
that an H100 could do in bf16 in a step of 1000 us.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.protocol import Step
from tests.recording import Recording
from tests.shared import CHECKOUT, traces_dir

SQUARE = [[4096, 4096], [4096, 4096]]
FLOPS = 2 * 4096**3
ONE = 100 * FLOPS / (989.4e12 * 1e-3)
BF16 = "c10::BFloat16"


def step_of(scene: Recording) -> Step:
    (step,) = scene.rank().steps
    return step


def test_the_flops_that_ran_over_those_that_could() -> None:
    scene = Recording().step(0, 0, 1000).op("aten::mm", 0, SQUARE, BF16).kernel("gemm_bf16", 1, 2, 300)
    step = step_of(scene)
    assert step.hfu == pytest.approx(ONE, rel=1e-12)
    assert step.mfu == step.hfu


def test_two_products_and_a_vector_kernel() -> None:
    """Twice the FLOPs; an addition is no product and adds none."""
    scene = Recording().step(0, 0, 1000)
    for i in range(2):
        scene.op("aten::mm", 10 * i, SQUARE, BF16).kernel("gemm_bf16", 10 * i + 1, 2 + 300 * i, 300)
    scene.op("aten::add", 30, [*SQUARE, []], BF16).kernel("vectorized_elementwise_kernel", 31, 700, 100)
    assert step_of(scene).hfu == pytest.approx(2 * ONE, rel=1e-12)


def test_a_kernel_belongs_to_the_step_in_which_it_starts() -> None:
    scene = Recording().step(0, 0, 1000).step(1, 1000, 1000)
    scene.op("aten::mm", 0, SQUARE, BF16).kernel("gemm_bf16", 1, 999, 300)
    scene.op("aten::add", 30, [*SQUARE, []], BF16).kernel("vectorized_elementwise_kernel", 31, 1500, 100)
    first, second = scene.rank().steps
    assert first.hfu == pytest.approx(ONE, rel=1e-12)
    assert second.hfu is None  # no product starts in it


def test_each_of_steps_inside_each_other_has_the_products_that_start_in_it() -> None:
    """In 1000 us from 0 on three products start, in 1000 us from 300 on two, in 1000 us from 600 on one."""
    scene = Recording()
    for i in range(3):
        scene.step(i, 300 * i, 1000)
        scene.op("aten::mm", 10 * i, SQUARE, BF16).kernel("gemm_bf16", 10 * i + 1, 100 + 300 * i, 300)
    assert [s.hfu for s in scene.rank().steps] == pytest.approx([3 * ONE, 2 * ONE, ONE], rel=1e-12)


def backward(scene: Recording, at: float, **inner: Any) -> Recording:
    """A node of autograd in [at, at + 20) and, inside, a product with these args more."""
    scene.host(
        "autograd::engine::evaluate_function: MmBackward0",
        at,
        20,
        **{"Sequence number": 7, "Fwd thread id": 1},
    )
    return scene.op("aten::mm", at + 5, SQUARE, BF16, **inner).kernel("gemm_bf16", at + 6, at + 300, 300)


def test_what_a_checkpoint_runs_again_is_not_of_the_model() -> None:
    """Within the backward pass the product that has a number of its own was run again for its gradients."""
    scene = backward(Recording().step(0, 0, 1000), 10, **{"Sequence number": 7, "Fwd thread id": 0})
    step = step_of(scene)
    assert (step.hfu, step.mfu) == (pytest.approx(ONE, rel=1e-12), 0)


def test_the_product_of_a_gradient_is_of_the_model() -> None:
    step = step_of(backward(Recording().step(0, 0, 1000), 10))
    assert step.mfu == step.hfu == pytest.approx(ONE, rel=1e-12)


def test_four_of_the_five_products_of_attentions_backward_pass_are_of_the_model() -> None:
    """B 1, H 1, S 1024, D 128: 2 x 1024 x 1024 x (3 x 128 + 2 x 128) FLOPs ran."""
    tensor = [1, 1024, 1, 128]
    dims = [tensor] * 5 + [[1, 1, 1024], [], [], [], [], [], [], [], []]
    types = [BF16] * 5 + ["float", "", "", "Scalar", "Scalar", "Scalar", "Scalar", "", ""]
    concrete = ["", "", "", "", "", "", "", "", "1024", "1024", "0.", "False", "", ""]
    args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": concrete,
            "Input Strides": [[131072, 128, 128, 1]] * 5 + [[1024, 1024, 1]] + [[]] * 8}  # fmt: skip
    scene = Recording().step(0, 0, 1000).host("aten::_flash_attention_backward", 0, 5, **args)
    step = step_of(scene.kernel("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", 1, 10, 100))
    ran = 2 * 1024 * 1024 * (3 * 128 + 2 * 128)
    assert step.hfu == pytest.approx(100 * ran / (989.4e12 * 1e-3), rel=1e-12)
    assert step.mfu == pytest.approx(0.8 * 100 * ran / (989.4e12 * 1e-3), rel=1e-12)


@pytest.mark.parametrize(("known", "told"), [(80, True), (79, False)])
def test_four_fifths_of_the_time_of_products_have_to_be_known(known: int, told: bool) -> None:
    scene = Recording().step(0, 0, 1000).op("aten::mm", 0, SQUARE, BF16).kernel("gemm_bf16", 1, 2, known)
    scene.host("mine::product", 10, 3).kernel("ampere_bf16_s16816gemm_bf16_128x128", 11, 200, 100 - known)
    assert (step_of(scene).hfu is not None) is told


def test_the_peak_is_that_of_the_type_of_most_flops() -> None:
    """A product in fp32 of one element less, by its name on the ordinary units: the peak stays bf16's."""
    scene = Recording().step(0, 0, 1000).op("aten::mm", 0, SQUARE, BF16).kernel("gemm_bf16", 1, 2, 300)
    scene.op("aten::mm", 10, [[4096, 4096], [4096, 4095]]).kernel("ampere_sgemm_128x64_nn", 11, 400, 300)
    both = FLOPS + 2 * 4096 * 4096 * 4095
    assert step_of(scene).hfu == pytest.approx(100 * both / (989.4e12 * 1e-3), rel=1e-12)


def resnet50_layers() -> Iterator[int]:
    """Multiply-adds of each layer for one image; the stem comes first."""
    yield 3 * 64 * 7 * 7 * 112 * 112
    wide = 64
    for blocks, narrow, size in ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)):
        for block in range(blocks):
            # The first block of a later stage takes its 1x1 before the stride.
            before = 2 * size if block == 0 and narrow > 64 else size
            yield wide * narrow * before * before
            yield narrow * narrow * 9 * size * size
            yield narrow * 4 * narrow * size * size
            if block == 0:
                yield wide * 4 * narrow * size * size
            wide = 4 * narrow
    yield 2048 * 1000


@pytest.mark.traces
def test_a_resnet50_by_hand() -> None:
    """docs/mfu.md: forward and two gradients, none of the images; the steps' HFU is of the same FLOPs."""
    layers = list(resnet50_layers())
    assert sum(layers) == 4_089_184_256
    by_hand = 32 * 2 * (3 * sum(layers) - layers[0])
    assert by_hand == 777_570_484_224
    rank = analyze(read(Path(traces_dir()) / "v100_resnet50_workers0.pt.trace.json.gz")).document.ranks[0]
    ops = ("aten::cudnn_conv", "aten::addmm", "aten::mm")
    products = [k for k in rank.kernels if k.flops and (k.op or "").startswith(ops)]
    assert sum(k.flops or 0 for k in products) == len(rank.steps) * by_hand
    in_steps = sum((s.hfu or 0) / 100 * 15.7e12 * s.step_time_us / 1e6 for s in rank.steps)
    assert 0.98 * len(rank.steps) * by_hand < in_steps <= len(rank.steps) * by_hand
    assert all(s.mfu == s.hfu for s in rank.steps)


QWEN = "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"


@pytest.mark.traces
@pytest.mark.parametrize("gpu", ["h100", "mi300"])
def test_a_transformer_by_hand(gpu: str) -> None:
    """docs/mfu.md: matrices, attention over half of the square with its diagonal, the rotary angles."""
    layers, heads, head, hidden, inner, prompts, tokens = 24, 16, 64, 1024, 2816, 16, 559
    matrices = 2 * layers * (4 * hidden**2 + 3 * hidden * inner) * prompts * tokens
    attention = layers * prompts * heads * 4 * head * (tokens * (tokens + 1) // 2)
    rotary = 2 * 32 * tokens
    assert (matrices, attention, rotary) == (5_514_536_681_472, 246_184_673_280, 35_776)
    rank = analyze(read(Path(traces_dir()) / "pairs" / gpu / QWEN)).document.ranks[0]
    # Kernels that were launched before the recording have no op of their own: they are of another pass.
    products = [k for k in rank.kernels if k.matrix and k.op and k.flops]
    assert sum(k.flops or 0 for k in products) == matrices + attention + rotary == 5_760_721_390_528


@pytest.mark.traces
def test_a_step_counts_what_an_earlier_pass_left_to_it() -> None:
    """5,760,721,390,528 / (47,151.395 us x 989.4e12) = 12.35 %; kernels without a launch do the rest."""
    rank = analyze(read(Path(traces_dir()) / "pairs/h100" / QWEN)).document.ranks[0]
    [step] = rank.steps
    earlier = sum(k.flops or 0 for k in rank.kernels if k.matrix and not k.op)
    assert step.step_time_us == 47_151.395
    own = 100 * 5_760_721_390_528 / (step.step_time_us / 1e6 * 989.4e12)
    assert own == pytest.approx(12.35, abs=0.005)
    assert step.hfu is not None
    assert own < step.hfu <= own * (1 + earlier / 5_760_721_390_528)
    text = (CHECKOUT / "docs/mfu.md").read_text("utf-8")
    assert f"that is {own:.1f} %. The step says more, {step.hfu:.1f} %" in " ".join(text.split())


@pytest.mark.traces
def test_a_checkpointed_model_computes_its_forward_pass_twice() -> None:
    """19 of its 20 convolutions run again: the hardware does about a third more than the model asks for."""
    rank = analyze(read(Path(traces_dir()) / "mi300_resnet_act_checkpoint_rank0of8.json.gz")).document.ranks[
        0
    ]
    last = rank.steps[-1]
    assert last.mfu is not None
    assert last.hfu is not None
    assert 1.25 < last.hfu / last.mfu < 1.40
    # Of the first step most kernels were launched before the recording: any of them may be a repetition.
    assert rank.steps[0].mfu is None
    assert rank.steps[0].hfu is not None
