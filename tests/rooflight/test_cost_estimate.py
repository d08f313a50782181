"""The traps of recorded arguments, and that nothing recorded can break the estimate."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.cost import Cost, OpCall, estimate, is_known_op, registry
from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.relatives import completed, typed
from rooflight.cost.tensor import Piece, Tensor, Unknown, distinct_offsets
from rooflight.cost.work import Work, pieces, total_bytes
from rooflight.dtypes import BY_NAME
from tests.shared import rounds


def call(op: str, *args: tuple[Any, str, str]) -> OpCall:
    """Arguments as (dims, type, concrete)."""
    dims, types, values = (tuple(column) for column in zip(*args, strict=True))
    return OpCall(op, dims, types, (), values)


def test_unknown_is_never_zero() -> None:
    assert estimate(OpCall("myorg::fused_thing", ([4, 4],), ("float",))) == Cost(reason="unknown_op")
    bare = estimate(OpCall("aten::mm"))
    assert (bare.flops, bare.bytes, bare.origin, bare.reason) == (None, None, "unknown", "no_shapes")


def test_dims_without_types_give_flops_and_no_bytes() -> None:
    """Recordings of 2021 hold "Input dims" alone."""
    cost = estimate(OpCall("aten::addmm", ([1000], [32, 2048], [2048, 1000], [], [])))
    assert (cost.flops, cost.bytes, cost.reason) == (2 * 32 * 2048 * 1000, None, "dtype_unknown")
    assert (cost.origin, cost.dtype, cost.matrix, cost.family) == ("modelled", None, True, "gemm")


def test_a_convolution_without_strides_takes_its_result_from_the_callers_word() -> None:
    dims = ([32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], [])
    assert estimate(OpCall("aten::cudnn_convolution", dims)).reason == "no_strides_recorded"
    told = OpCall("aten::cudnn_convolution", dims, output_dims=(32, 64, 112, 112), output_source="backward")
    cost = estimate(told)
    assert cost.flops == 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7
    assert (cost.bytes, cost.origin, cost.reason) == (None, "modelled", "backward")


@pytest.mark.parametrize(
    ("op", "dims", "macs"),
    [
        # (size, dO, weight) and (size, dO, input), both of a 1x1 kernel over 512 channels.
        (
            "aten::cudnn_convolution_backward_input",
            ([], [32, 2048, 7, 7], [2048, 512, 1, 1]),
            2048 * 49 * 512,
        ),
        (
            "aten::cudnn_convolution_backward",
            ([32, 512, 7, 7], [32, 2048, 7, 7], [2048, 512, 1, 1]),
            2 * 2048 * 49 * 512,
        ),
    ],
)
def test_gradients_of_old_recordings(op: str, dims: tuple[Any, ...], macs: int) -> None:
    assert estimate(OpCall(op, dims)).flops == 2 * 32 * macs


def test_the_word_false_is_false() -> None:
    flags = Arguments(OpCall("x", ([], []), (), (), ("False", "True")))
    assert (flags.flag(0), flags.flag(1), flags.flag(2)) == (False, True, None)


def test_a_python_number_does_not_promote() -> None:
    """x * 2.0 is recorded as a "double" without dims; the result stays bf16: 2 bytes an element."""
    cost = estimate(call("aten::mul", ([64, 64], "c10::BFloat16", ""), ([], "double", "")))
    assert (cost.bytes_written, cost.dtype) == (64 * 64 * 2, "bf16")


def test_a_python_number_is_not_read() -> None:
    """It comes with the launch: x alone is read, 2 bytes an element.  A float without dims is a tensor."""
    number = estimate(call("aten::mul", ([64, 64], "c10::BFloat16", ""), ([], "double", "")))
    assert number.bytes_read == 64 * 64 * 2
    tensor = estimate(call("aten::mul", ([64, 64], "c10::BFloat16", ""), ([], "float", "")))
    assert tensor.bytes_read == 64 * 64 * 2 + 4
    # Two of one kind without dims: nothing tells which is the number.
    alike = estimate(call("aten::add", ([], "long int", ""), ([], "long int", "")))
    assert alike.bytes_read == 8 + 8


@pytest.mark.parametrize(
    ("left", "right", "size"),
    [
        (("c10::Half", [8]), ("c10::BFloat16", [8]), 4),  # neither holds the other: fp32
        (("long int", [8]), ("double", []), 4),  # an integer tensor times 2.0: fp32
        (("bool", [8]), ("bool", [8]), 1),
        (("unsigned char", [8]), ("signed char", [8]), 2),  # int16 holds both
        (("long", [8]), ("int", [8]), 8),  # as Clang builds spell it
        (("c10::complex<float>", [8]), ("double", [8]), 16),
        (("double", [8]), ("c10::complex<double>", []), 16),  # times 2j: as wide as the tensor
        (("c10::Half", [8]), ("c10::complex<double>", []), 4),
        (("long int", []), ("double", []), 4),  # one whole number times 2.0: fp32
    ],
)
def test_promotion(left: tuple[str, list[int]], right: tuple[str, list[int]], size: int) -> None:
    cost = estimate(call("aten::mul", (left[1], left[0], ""), (right[1], right[0], "")))
    assert cost.bytes_written == max(*left[1], *right[1], 1, 1) * size


def test_a_list_of_tensors_has_no_type() -> None:
    cost = estimate(OpCall("aten::cat", ([[10, 20], [30, 20]], []), ("TensorList", "Scalar"), (), ("", "0")))
    assert (cost.flops, cost.bytes, cost.reason) == (0, None, "dtype_unknown")
    # A list of more than 30 tensors is recorded empty; that is not a list without tensors.
    assert (
        estimate(OpCall("aten::_foreach_add_", ([], [], []), ("TensorList", "TensorList", "Scalar"))).flops
        is None
    )


def test_float4_holds_two_values_in_a_byte() -> None:
    two = "c10::Float4_e2m1fn_x2"
    blanks = [([], "", "")] * 4
    cost = estimate(
        call("aten::_scaled_mm", ([16, 32], two, ""), ([32, 8], two, ""), *blanks, ([], "Scalar", "15"))
    )
    assert (cost.flops, cost.dtype) == (2 * 16 * 8 * 64, "fp4")
    assert (cost.bytes_read, cost.bytes_written) == (16 * 32 + 32 * 8, 2 * 16 * 8)


def test_an_overload_finds_the_ops_formula() -> None:
    assert is_known_op("aten::add.Tensor")
    assert not is_known_op("myorg::add.Tensor")
    assert estimate(OpCall("aten::mm.out", ([2, 3], [3, 4]))).flops == 2 * 2 * 3 * 4


def test_packed_sequences_are_unknown() -> None:
    packed = [([100, 8, 64], "c10::Half", "")] * 3 + [([5], "int", "")] * 2
    assert estimate(call("aten::_flash_attention_forward", *packed)).reason == "lengths_are_values"


def test_composites_say_so() -> None:
    cost = estimate(OpCall("aten::scaled_dot_product_attention", ([2, 4, 8, 16],) * 3, ("float",) * 3))
    # Dense, as causality is not recorded: 2 * 2*4 * 8*8 * (16+16).
    assert (cost.flops, cost.reason) == (2 * 8 * 64 * 32, "composite")


def test_a_matrix_op_of_float8_has_its_roof() -> None:
    e5m2 = ([32, 32], "c10::Float8_e5m2", "")
    assert estimate(call("aten::_scaled_mm", e5m2, e5m2)).dtype == "fp8"


@pytest.mark.parametrize(
    ("name", "size", "link", "read", "written"),
    [
        ("Memcpy DtoD (Device -> Device)", 64, 0, 64, 64),
        ("CopyHostToDevice", 64, 64, 0, 64),
        ("Memcpy DtoH (Device -> Pageable)", 64, 64, 64, 0),
        ("Memset (Device)", 64, None, 0, 64),
    ],
)
def test_copies_by_the_driver(name: str, size: int, link: int | None, read: int, written: int) -> None:
    cost = estimate(OpCall(name, gpu_args={"bytes": size}))
    assert (cost.bytes_read, cost.bytes_written, cost.link_bytes, cost.origin) == (
        read,
        written,
        link,
        "measured",
    )


def test_a_copy_without_bytes_is_unknown() -> None:
    assert estimate(OpCall("Memcpy HtoD (Pinned -> Device)")).bytes is None
    assert estimate(OpCall("Memcpy (Unified)", gpu_args={"bytes": 4})).bytes is None


def test_a_collective_kernel_is_costed_from_its_own_args() -> None:
    comm = {
        "Collective name": "allreduce",
        "In msg nelems": "1000",
        "Out msg nelems": 1000,
        "dtype": "BFloat16",
        "Group size": 4,
    }
    cost = estimate(OpCall("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", comm=comm))
    # 2,000 bytes; bus bytes 2 * 3/4 of them.
    assert (cost.flops, cost.bytes_read, cost.link_bytes, cost.family) == (0, 2000, 3000, "collective")


def test_a_send_or_receive_pair_names_no_pattern() -> None:
    comm = {"Collective name": "sendrecv", "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Float"}
    assert estimate(OpCall("k", comm=comm)).bytes is None


def test_more_than_int64_is_unknown() -> None:
    huge = 2**40
    cost = estimate(OpCall("aten::mm", ([huge, huge], [huge, huge]), ("float", "float")))
    assert (cost.flops, cost.bytes, cost.reason) == (None, None, "out_of_range")


def test_overlap_that_cannot_be_counted_cheaply_is_unknown() -> None:
    with pytest.raises(Unknown, match="overlapping_strides"):
        distinct_offsets((10**6, 10**6), (7, 5))


def test_pieces_of_unknown_type_weigh_nothing_only_when_empty() -> None:
    assert total_bytes(pieces(Piece(0, None), Piece(3, BY_NAME["fp32"]))) == 12
    assert total_bytes(pieces(Piece(1, None))) is None
    assert Tensor((4, 4), BY_NAME["fp16"], (0, 1)).traffic.bytes == 8


def test_a_name_is_given_once() -> None:
    def twice(args: Arguments) -> Work:
        """Never asked."""
        raise AssertionError(args)

    with pytest.raises(ValueError, match="'aten::mm' has a cost model already"):
        cost_model("aten::mm", family="gemm")(twice)
    assert registry.find("aten::mm") is not None


def test_a_formula_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="no docstring"):
        cost_model("my::op", family="gemm")(lambda args: Work(0, (), ()))
    assert not is_known_op("my::op")


hostile = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(
            ["[1, 1]", "[-1]", "[99999999999999999999]", "True", "[True, False]", "1e999", "-0", "[]"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)
shapes = st.lists(st.integers(0, 6), max_size=5)
kinds = st.one_of(st.sampled_from(["float", "c10::Half", "", "Scalar", "ScalarList", "TensorList"]), hostile)
OPS = sorted({n for m in registry.models() for n in m.names + tuple(p + "x" for p in m.prefixes)})


def check(cost: Cost) -> None:
    for value in (cost.flops, cost.bytes_read, cost.bytes_written, cost.link_bytes):
        assert value is None or (type(value) is int and 0 <= value < 2**63)
    assert (cost.bytes_read is None) == (cost.bytes_written is None)
    assert cost.reason or (cost.flops is not None and cost.bytes is not None)


@settings(max_examples=rounds(250, 5000), deadline=None)
@given(st.sampled_from(OPS), st.data())
def test_nothing_recorded_breaks_the_estimate(op: str, data: st.DataObject) -> None:
    column = st.lists(st.one_of(shapes, hostile), max_size=17)
    dims, strides, values = (data.draw(column) for _ in range(3))
    types = data.draw(st.lists(kinds, max_size=17))
    gpu_args = data.draw(st.dictionaries(st.sampled_from(["bytes", "x"]), hostile, max_size=2))
    keys = ["Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size"]
    comm = data.draw(st.dictionaries(st.sampled_from(keys), hostile, max_size=5))
    check(estimate(OpCall(op, tuple(dims), tuple(types), tuple(strides), tuple(values), gpu_args, comm)))


@settings(max_examples=rounds(250, 5000), deadline=None)
@given(st.sampled_from(OPS), st.data())
def test_plausible_shapes_of_the_wrong_op_do_not_either(op: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 17))
    dims = data.draw(st.lists(st.one_of(shapes, st.lists(shapes, max_size=3)), min_size=n, max_size=n))
    types = data.draw(st.lists(st.sampled_from(["float", "long int", "", "Scalar"]), min_size=n, max_size=n))
    texts = st.sampled_from(
        ["", "1", "-1", "0.5", "[1, 1]", "[2]", "True", "False", "[True, True, True]", "6", "[0]"]
    )
    values = data.draw(st.lists(texts, min_size=n, max_size=n))
    check(estimate(OpCall(op, tuple(dims), tuple(types), (), tuple(values))))


OLD_CONV = OpCall("aten::cudnn_convolution", ([32, 3, 224, 224], [64, 3, 7, 7], *[[]] * 7))
OLD_BACKWARD = OpCall(
    "aten::cudnn_convolution_backward", ([32, 3, 224, 224], [32, 64, 112, 112], [64, 3, 7, 7], *[[]] * 8)
)
STEM = 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7  # FLOPs of that convolution


def test_the_result_of_an_old_convolution_is_the_gradient_that_flows_back() -> None:
    cost = estimate(completed(OLD_CONV, backward=OLD_BACKWARD))
    assert (cost.flops, cost.reason) == (STEM, "dO of aten::cudnn_convolution_backward")
    # The newer op has dO first.
    newer = OpCall(
        "aten::convolution_backward", ([32, 64, 112, 112], *OLD_BACKWARD.dims[:1], *OLD_BACKWARD.dims[2:])
    )
    assert estimate(completed(OLD_CONV, backward=newer)).flops == STEM


@pytest.mark.parametrize(
    ("op", "rest", "made"),
    [
        ("aten::cudnn_convolution_backward_weight", [32, 3, 224, 224], (64, 3, 7, 7)),
        ("aten::cudnn_convolution_backward_input", [64, 3, 7, 7], (32, 3, 224, 224)),
    ],
)
def test_an_old_gradient_is_as_large_as_the_op_around_it_says(op: str, rest: list[int], made: Any) -> None:
    lone = OpCall(op, ([], [32, 64, 112, 112], rest, *[[]] * 7))
    told = completed(lone, parent=OLD_BACKWARD)
    assert told.output_dims == made
    assert (estimate(told).flops, estimate(told).reason) == (STEM, "dims of aten::cudnn_convolution_backward")


def test_a_row_with_values_needs_no_relative() -> None:
    whole = OpCall(
        "aten::cudnn_convolution", OLD_CONV.dims, concrete=("", "", "[3, 3]", "[2, 2]", "[1, 1]", "1")
    )
    assert completed(whole, backward=OLD_BACKWARD) is whole
    assert completed(OLD_CONV, parent=OLD_BACKWARD) is OLD_CONV
    assert completed(OLD_CONV, backward=OpCall("aten::mm")) is OLD_CONV
    assert completed(OLD_CONV, backward=OpCall(OLD_BACKWARD.op, ([], "x"))) is OLD_CONV
    assert completed(OpCall("my::op"), OLD_CONV, OLD_BACKWARD) == OpCall("my::op")


def test_a_whole_interpreter_stack_is_not_an_argument_list() -> None:
    """TorchScript recorders wrote the stack down, whose first entries belong to other ops."""
    stack = ([512, 2842], [512], [2048, 1421], [2048, 1421], [])
    assert estimate(OpCall("aten::mul", stack, ("float",) * 5)).reason == "too_many_arguments"


@pytest.mark.parametrize(
    ("op", "values", "result"),
    [
        # [3, 4, 5] and [5, 4, 2] over (4, 5): 3 x 2 results of 20 multiply-adds.
        ("aten::tensordot", ("", "", "[1, 2]", "[1, 0]"), 2 * 6 * 20),
        ("aten::tensordot", ("", "", "[0]", "[0]"), None),
    ],
)
def test_tensordot(op: str, values: tuple[str, ...], result: int | None) -> None:
    assert (
        estimate(OpCall(op, ([3, 4, 5], [5, 4, 2], [], []), ("float", "float"), (), values)).flops == result
    )


def test_inner() -> None:
    assert estimate(OpCall("aten::inner", ([3, 5], [7, 5]), ("float", "float"))).flops == 2 * 3 * 7 * 5


def test_a_scaled_grouped_product_is_bf16_unless_told() -> None:
    narrow, wide = "c10::Float8_e4m3fn", [[], "", ""]
    rest = [([32], "float", ""), ([3, 48], "float", ""), ([3], "int", ""), wide, wide]
    event = call("aten::_scaled_grouped_mm", ([32, 64], narrow, ""), ([3, 64, 48], narrow, ""), *rest, wide)
    cost = estimate(event)
    assert (cost.flops, cost.bytes_written) == (2 * 32 * 64 * 48, 2 * 32 * 48)
    assert cost.bytes_read == 32 * 64 + 3 * 64 * 48 + 4 * (32 + 3 * 48 + 3)


def test_a_kernels_name_tells_the_type_of_a_list() -> None:
    cat = OpCall("aten::cat", ([[10, 20], [30, 20]], []), ("TensorList", "Scalar"), (), ("", "0"))
    cost = estimate(typed(cat, "2-byte"))
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (0, 2 * 800, 2 * 800)
    assert typed(cat, None) is cat
    assert typed(cat, "bf16->fp32") is cat
    assert typed(OLD_CONV, "fp32") is OLD_CONV


def test_adam_in_fp32_moves_28_bytes_a_parameter() -> None:
    shapes, steps = [[10, 20], [30]], [[], []]
    lists = (shapes, shapes, shapes, shapes, [], steps)
    adam = OpCall(
        "aten::_fused_adamw_",
        (*lists, *[[]] * 9),
        ("TensorList",) * 6,
        (),
        (*[""] * 6, "0.001", "0.9", "0.999", "0.01", "1e-8", "False", "False", "", ""),
    )
    cost = estimate(typed(adam, "fp32"))
    assert cost.flops == 14 * 230
    assert cost.bytes == 28 * 230 + 2 * 4  # two step counts


def test_a_copy_between_lists_may_change_the_type() -> None:
    copy = OpCall("aten::_foreach_copy_", ([[8]], [[8]], []), ("TensorList", "TensorList", "Scalar"))
    cost = estimate(typed(copy, "fp32"))
    assert (cost.flops, cost.bytes, cost.reason) == (0, None, "dtype_unknown")


def test_scalars_of_2021_are_no_tensors() -> None:
    """relu of torch 1.9: clamp_min(x, 0, out=y).  x is read, y is written and not read."""
    dims = ([32, 64], [], [32, 64])
    cost = estimate(OpCall("aten::clamp_min", dims, ("float", "Int", "float")))
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (2048, 4 * 2048, 4 * 2048)
