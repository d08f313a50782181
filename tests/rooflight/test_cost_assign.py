"""One op on several kernels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight import analyze
from rooflight.cost import Cost, OpCall, estimate
from rooflight.cost.assign import DurationsDecideError, assign, conv_backward_shares, shares, untimed
from tests.drawing import timeline_from_events

GEMM = Cost(1000, 300, 100, "modelled", dtype="bf16", matrix=True, family="gemm")
MM = OpCall("aten::mm")


def backward(mask: str, op: str = "aten::convolution_backward") -> OpCall:
    """dO [2,8,10,10], input [2,4,10,10], weight [8,4,3,3] in fp32."""
    grad, x, w = [2, 8, 10, 10], [2, 4, 10, 10], [8, 4, 3, 3]
    if op == "aten::convolution_backward":
        values = ("", "", "", "[8]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask)
        return OpCall(op, (grad, x, w, *[[]] * 8), ("float", "float", "float"), (), values)
    values = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "False", mask)
    return OpCall(op, (x, grad, w, *[[]] * 8), ("float", "float", "float"), (), values)


# Forward multiply-adds: 2*8*10*10 results of 4*3*3 taps = 57,600; 2 FLOPs each.
MACS_FLOPS = 2 * 1600 * 36
GRAD, INPUT, WEIGHT = 4 * 1600, 4 * 800, 4 * 288


def test_a_lone_kernel_takes_all() -> None:
    assert assign(GEMM, MM, [("elementwise", 5)]) == [GEMM]
    assert assign(GEMM, MM, []) == []


def test_the_main_kernel_takes_all_and_helpers_have_no_flops() -> None:
    main, helper, fill = assign(GEMM, MM, [("gemm", 10), ("gemm_aux", 50), ("fill", 90)])
    assert main == GEMM
    assert (helper.flops, helper.bytes, helper.reason) == (0, None, "aux_kernel")
    assert (fill.flops, fill.bytes) == (0, None)


def test_kernels_of_the_family_share_by_duration() -> None:
    parts = assign(GEMM, MM, [("gemm", 30), ("layout", 5), ("gemm", 10)])
    # 1000 FLOPs over 30:10 is 750 and 250; 300 bytes 225 and 75; 100 bytes 75 and 25.
    assert [p.flops for p in parts] == [750, 0, 250]
    assert [(p.bytes_read, p.bytes_written) for p in (parts[0], parts[2])] == [(225, 75), (75, 25)]


def test_of_several_candidate_families_the_longest_kernels_is_meant() -> None:
    parts = assign(GEMM, MM, [("gemv", 10), ("moe_gemm", 40)])
    assert [p.flops for p in parts] == [0, 1000]


def test_without_a_kernel_of_the_family_the_longest_that_is_no_helper_takes_it() -> None:
    parts = assign(GEMM, MM, [("other", 10), ("elementwise", 20), ("layout", 99)])
    assert [p.flops for p in parts] == [0, 1000, 0]
    parts = assign(GEMM, MM, [("conv_aux", 10), ("layout", 99)])
    assert [p.flops for p in parts] == [0, 1000]


def test_a_fill_is_the_main_kernel_of_a_fill() -> None:
    cost = estimate(OpCall("aten::zero_", ([64, 64],), ("float",), ([64, 1],)))
    parts = assign(cost, OpCall("aten::zero_"), [("fill", 10), ("other", 20)])
    assert [p.bytes_written for p in parts] == [4 * 64 * 64, None]


def test_an_unknown_cost_stays_unknown_for_every_kernel_but_helpers() -> None:
    unknown = Cost(reason="unknown_op")
    parts = assign(unknown, OpCall("my::op"), [("other", 1), ("conv_aux", 2)])
    assert parts[0] == unknown
    assert (parts[1].flops, parts[1].bytes) == (0, None)


@pytest.mark.parametrize("op", ["aten::convolution_backward", "aten::cudnn_convolution_backward"])
def test_the_shares_of_a_convolutions_gradients(op: str) -> None:
    mask = "[True, True, True]" if op == "aten::convolution_backward" else "[True, True]"
    data, weight = conv_backward_shares(backward(mask, op))
    assert (data.flops, weight.flops) == (MACS_FLOPS, MACS_FLOPS)
    assert (data.bytes_read, data.bytes_written) == (GRAD + WEIGHT, INPUT)
    assert (weight.bytes_read, weight.bytes_written) == (GRAD + INPUT, WEIGHT)
    assert (data.family, weight.family, data.matrix, data.dtype) == ("conv_dgrad", "conv_wgrad", True, "fp32")


def test_a_gradient_that_the_mask_leaves_out_costs_nothing() -> None:
    data, weight = conv_backward_shares(backward("[False, True, False]"))
    assert (data.flops, data.bytes, weight.flops) == (0, 0, MACS_FLOPS)


def test_shares_of_something_else_are_unknown() -> None:
    assert conv_backward_shares(MM) == (Cost(reason="unknown_op"), Cost(reason="unknown_op"))
    assert conv_backward_shares(OpCall("aten::convolution_backward"))[0].flops is None


def share_out(mask: str, kernels: list[tuple[str, int]]) -> list[int | None]:
    call = backward(mask)
    return [p.flops for p in assign(estimate(call), call, kernels)]


def test_each_gradients_kernels_take_its_share() -> None:
    kernels = [("conv_dgrad", 10), ("layout", 5), ("conv_wgrad", 30), ("conv_wgrad", 10), ("reduction", 4)]
    assert share_out("[True, True, True]", kernels) == [
        MACS_FLOPS,
        0,
        MACS_FLOPS * 3 // 4,
        MACS_FLOPS // 4,
        0,
    ]


def test_a_gradient_without_a_kernel_of_its_name_goes_to_the_longest_that_is_left() -> None:
    """cuDNN computes some input gradients with a forward kernel."""
    kernels = [("conv_fwd", 8), ("conv_wgrad", 30), ("elementwise", 9)]
    assert share_out("[True, True, False]", kernels) == [MACS_FLOPS, MACS_FLOPS, 0]


def test_one_kernel_beside_a_helper_takes_both_gradients() -> None:
    assert share_out("[True, True, False]", [("conv_dgrad", 8), ("layout", 30)]) == [2 * MACS_FLOPS, 0]


def test_the_bias_gradient_alone_has_no_flops() -> None:
    call = backward("[False, False, True]")
    parts = assign(estimate(call), call, [("reduction", 5), ("layout", 9)])
    # Read dO, write 8 channels.
    assert [(p.flops, p.bytes_read, p.bytes_written) for p in parts] == [(0, GRAD, 32), (0, None, None)]


def test_shares_are_whole_and_in_proportion() -> None:
    assert shares(10, [1, 1, 1]) == [4, 3, 3]
    assert shares(7, [0, 0]) == [4, 3]
    assert shares(None, [1, 2]) == [None, None]
    # 100 over 1:2:4 is 14.29, 28.57, 57.14: the largest remainder (28.57) gets the one left over.
    assert shares(100, [1, 2, 4]) == [14, 29, 57]


@given(st.integers(0, 2**62), st.lists(st.integers(0, 10**12), min_size=1, max_size=9))
def test_nothing_is_lost_in_sharing(total: int, weights: list[int]) -> None:
    assert sum(p or 0 for p in shares(total, weights)) == total


families = st.sampled_from(
    ["gemm", "gemm_aux", "conv_fwd", "conv_dgrad", "conv_wgrad", "layout", "fill", "other", "elementwise"]
)


@given(st.lists(st.tuples(families, st.integers(0, 1000)), min_size=1, max_size=6))
def test_the_flops_of_an_op_are_those_of_its_kernels(kernels: list[tuple[str, int]]) -> None:
    call = backward("[True, True, True]")
    for cost, of in ((GEMM, MM), (estimate(call), call)):
        assert sum(p.flops or 0 for p in assign(cost, of, kernels)) == cost.flops


FAMILIES = ("gemm", "gemm_aux", "conv_fwd", "conv_dgrad", "conv_wgrad", "elementwise", "layout", "fill")


@given(
    st.sampled_from(["[True, True, False]", "[True, False, True]", "[False, False, True]", "mm"]),
    st.lists(st.tuples(st.sampled_from(FAMILIES), st.integers(0, 10**6)), max_size=6),
)
def test_what_no_duration_decides_is_the_same_whatever_they_are(
    mask: str, kernels: list[tuple[str, int]]
) -> None:
    call, cost = (MM, GEMM) if mask == "mm" else (backward(mask), estimate(backward(mask)))
    families = [family for family, _ in kernels]
    try:
        told = assign(cost, call, list(zip(families, untimed(len(families)), strict=True)))
    except DurationsDecideError:
        assert len(families) > 1
        return
    assert told == assign(cost, call, kernels)


def test_durations_decide_where_two_kernels_share_and_nowhere_else() -> None:
    def decided(*families: str) -> bool:
        try:
            assign(GEMM, MM, list(zip(families, untimed(len(families)), strict=True)))
        except DurationsDecideError:
            return True
        return False

    assert decided("gemm", "gemm")
    assert decided("gemv", "moe_gemm")
    assert not decided("gemm", "elementwise")
    assert not decided("gemm", "gemm_aux", "fill")
    assert not decided("elementwise")


def test_a_collective_without_args_is_costed_from_the_op_around_it() -> None:
    """Recorders of 2023 named neither collective nor size with the kernel.  all_to_all of 6,144 floats in and
    6,144 out: 24,576 bytes read and as many written, 0 FLOPs; how many ranks took part stands nowhere."""
    events = [
        op("c10d::alltoall_base_", 0, 10, [[6144], [6144], *[[]] * 4], ["float", "float", *[""] * 4]),
        op("record_param_comms", 1, 8, [[6144], [], [], [], [], [], []], ["float", *[""] * 6]),
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1, "ts": 2, "dur": 1,
         "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)",
         "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {"device": 0, "stream": 7, "correlation": 1}},
    ]  # fmt: skip
    (row,) = analyze(timeline_from_events(events)).document.ranks[0].kernels
    assert (row.flops, row.bytes, row.origin) == (0, 2 * 4 * 6144, "modelled")
    assert (row.op, row.input_dims) == ("record_param_comms", "[[6144], [6144], [], [], [], []]")


def op(name: str, ts: float, dur: float, dims: list[Any], types: list[str]) -> dict[str, Any]:
    args = {"Input Dims": dims, "Input type": types}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 1, "ts": ts, "dur": dur, "args": args}
