"""What a row leaves out and another row of the same call tells: sizes of concatenations and collectives."""

from __future__ import annotations

from typing import Any

from rooflight.cost import OpCall, estimate
from rooflight.cost.relatives import completed, typed
from rooflight.protocol import Kernel
from tests.recording import V100, Recording

CAT = OpCall("aten::cat", ([], []), ("TensorList", "Scalar"))
GRADIENT = OpCall("CatBackward0", ([16, 384],), ("float",))
_CAT_KERNEL = "void CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, int)"
_REDUCE = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
_PARTS = {"Input Dims": [[], []], "Input type": ["TensorList", "Scalar"]}
_FORWARD = {"Sequence number": 7, "Fwd thread id": 0}
_BACKWARD = {"Sequence number": 7, "Fwd thread id": 1}
_LISTS = {"Input Dims": [[], [], [], []], "Input type": ["TensorList", "", "", "Scalar"]}


def _inputs(dims: object) -> dict[str, Any]:
    return {"Input Dims": dims, "Input type": ["float"]}


def kernel(recording: Recording, name: str) -> Kernel:
    return next(k for k in recording.rank().kernels if k.name.startswith(name))


def test_what_was_put_together_is_as_large_as_its_gradient() -> None:
    told = completed(CAT, backward=GRADIENT)
    assert (told.output_dims, told.output_source) == ((16, 384), "dO of CatBackward0")
    # The kernel's name tells the element type of the list: 16*384*4 B are read, and as many written.
    assert (estimate(told).bytes, estimate(told).reason) == (None, "dtype_unknown")
    assert estimate(typed(told, "fp32")).bytes == 2 * 16 * 384 * 4
    assert estimate(typed(told, "fp32")).reason == "dO of CatBackward0"


def test_or_as_all_gradients_that_a_split_puts_together_again() -> None:
    split = OpCall("SplitWithSizesBackward0", ([16, 24], [16, 8]), ("float", "float"))
    assert completed(CAT, parent=split).output_dims == (16 * 24 + 16 * 8,)
    # A part without a gradient is not shown; zeros as large as it are put in its place.
    assert completed(CAT, parent=OpCall(split.op, ([16, 24], []), ("float", ""))) is CAT
    assert completed(CAT, parent=OpCall("MulBackward0", split.dims, split.types)) is CAT


def test_recorded_parts_need_no_gradient() -> None:
    whole = OpCall("aten::cat", ([[2, 3], [2, 5]], []), ("TensorList", "Scalar"))
    assert completed(whole, backward=GRADIENT) is whole


def _concatenation(*, also_numbered: bool = False) -> Recording:
    r = Recording(V100).host("aten::cat", 100, 4, **_PARTS, **_FORWARD)
    r.kernel(_CAT_KERNEL, 101, 110, 5)
    if also_numbered:
        r.host("aten::cat", 90, 4, **_PARTS, **_FORWARD)
    return r.host("CatBackward0", 200, 4, **_inputs([[16, 384]]), **_BACKWARD)


def test_forward_and_backward_meet_by_their_number() -> None:
    cat = kernel(_concatenation(), "void CatArray")
    assert (cat.bytes, cat.origin, cat.cost_reason) == (2 * 16 * 384 * 4, "modelled", "dO of CatBackward0")


def test_a_number_that_two_carry_tells_nothing() -> None:
    """An op that needs no gradient has the number of the next one that does."""
    cat = kernel(_concatenation(also_numbered=True), "void CatArray")
    assert (cat.bytes, cat.origin, cat.cost_reason) == (None, "unknown", "no_shapes")


def _collective(
    *kernels: str, annotation: str = "nccl:all_reduce", dims: object = ((394_241,),)
) -> Recording:
    r = Recording(V100).host("c10d::allreduce_", 100, 20, **_LISTS)
    r.host("record_param_comms", 101, 18, **_LISTS)
    r.host(annotation, 102, 16, cat="user_annotation", **_inputs(dims))
    for i, name in enumerate(kernels):
        r.kernel(name, 104 + 2 * i, 130 + 50 * i, 40)
    return r


def test_a_collective_is_as_large_as_the_tensor_that_its_annotation_shows() -> None:
    found = kernel(_collective(_REDUCE), _REDUCE)
    # Read and written once in local memory; how many ranks there are is not recorded, so no bus bytes.
    assert (found.bytes, found.flops, found.link_bytes) == (2 * 394_241 * 4, 0, None)
    assert (found.origin, found.cost_reason) == ("modelled", "dims of nccl:all_reduce")
    assert (found.op, found.input_dims, found.regime) == ("record_param_comms", "[[394241]]", "communication")


def test_nothing_is_told_where_the_annotation_holds_two_kernels() -> None:
    two = _collective(_REDUCE, _REDUCE.replace("Sum", "Prod"))
    assert {k.origin for k in two.rank().kernels} == {"unknown"}


def test_what_an_all_to_all_brings_is_not_shown() -> None:
    found = kernel(
        _collective(_REDUCE.replace("AllReduce", "SendRecv"), annotation="nccl:all_to_all"), "nccl"
    )
    assert (found.bytes, found.origin) == (None, "unknown")


def test_an_annotation_around_the_op_is_not_of_its_call() -> None:
    r = Recording(V100).host("nccl:all_reduce", 90, 60, cat="user_annotation", **_inputs([[8]]))
    r.host("record_param_comms", 101, 18, **_LISTS).kernel(_REDUCE, 104, 130, 40)
    assert kernel(r, _REDUCE).origin == "unknown"


def test_annotations_of_broken_dims_tell_nothing() -> None:
    for broken in ("x", [[-1]], [["a"]], [[2**62, 8]], [], [[]], 7):
        assert kernel(_collective(_REDUCE, dims=broken), _REDUCE).bytes in (None, 8), broken


def test_the_reason_of_a_row_is_that_of_what_is_known_least() -> None:
    r = _concatenation().host("aten::cat", 300, 4, **_PARTS)
    cat = kernel(r.kernel(_CAT_KERNEL, 301, 310, 5), "void CatArray")
    assert (cat.count, cat.origin, cat.cost_reason) == (2, "unknown", "no_shapes")


def test_pooled_embeddings_change_places() -> None:
    dims = ([1024, 70904], [981], [980], [981], [980])
    op = OpCall("fbgemm::permute_pooled_embs_auto_grad", dims, ("float", *["long"] * 4))
    assert estimate(op).bytes == 2 * 1024 * 70904 * 4
    node = "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_gpu> >"
    assert estimate(OpCall(node, ([1024, 70904],), ("float",))).bytes == 2 * 1024 * 70904 * 4
    assert estimate(OpCall(op.op)).reason == "no_shapes"
