"""Mixtures of experts: the choice of the experts, the sum over their results, and all of it in one op.

Not counted: the search for the largest scores.

Source: a convention of our own; the order of arguments as each engine registers its ops: vllm-project/vllm
csrc/moe/torch_bindings.cpp @b4ae92e3 and csrc/torch_bindings.cpp @00256d59, sgl-project/sglang
sgl-kernel/csrc/common_extension.cc @0063ef14 (read 2026-12-02).
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Unknown
from rooflight.cost.work import Work, pieces


@cost_model(
    "vllm::moe_forward",
    "vllm::moe_forward_shared",
    "vllm::fused_experts",
    "vllm::inplace_fused_experts",
    "vllm::outplace_fused_experts",
    "vllm::rocm_aiter_fused_moe",
    "sglang::inplace_fused_experts",
    "sglang::outplace_fused_experts",
    "aiter::fused_moe",
    "_moe_C::moe_wna16_gemm",
    "_moe_C::moe_wna16_marlin_gemm",
    "sgl_kernel::moe_wna16_marlin_gemm",
    "sgl_kernel::fp8_blockwise_scaled_grouped_mm",
    "sgl_kernel::cutlass_fp4_group_mm",
    "sgl_kernel::cutlass_w4a8_moe_mm",
    "_C::cutlass_moe_mm",
    "_C::cutlass_fp4_group_mm",
    "_C::cutlass_mxfp8_grouped_mm",
    "_C::ggml_moe_a8",
    "_C::ggml_moe_a8_vec",
    family="moe_gemm",
    matrix=True,
)
def moe_forward(args: Arguments) -> Work:
    """Which experts are asked, and how often, are values (experts of other ranks not at all), and in some
    ops their weights are hidden: unknown on purpose."""
    del args
    raise Unknown("routing_is_values")


@cost_model(
    "_moe_C::topk_softmax", family="moe_routing", params="weights indices token_expert_indices scores"
)
def topk_softmax(args: Arguments) -> Work:
    """Reads the scores, writes weights, experts and places of the chosen ones.  FLOPs have no convention."""
    writes = pieces([args.tensor(i).like() for i in range(3)])
    scores = args.tensor(3)
    return Work(None, pieces(scores), writes, scores.dtype, "no_convention")


@cost_model("sgl_kernel::topk_softmax", family="moe_routing", params="weights indices scores")
def topk_softmax_without_places(args: Arguments) -> Work:
    """As that of vLLM, without the places."""
    scores = args.tensor(2)
    writes = pieces(args.tensor(0).like(), args.tensor(1).like())
    return Work(None, pieces(scores), writes, scores.dtype, "no_convention")


@cost_model("_moe_C::moe_sum", "sgl_kernel::moe_sum", family="moe_routing", params="x result")
def moe_sum(args: Arguments) -> Work:
    """x [tokens, experts, width] summed over the experts: 1 FLOP per element read."""
    x, out = args.tensor(0), args.tensor(1)
    return Work(x.numel, pieces(x), pieces(out.like()), x.dtype)


@cost_model("sgl_kernel::moe_sum_reduce", family="moe_routing", params="x result factor")
def moe_sum_reduce(args: Arguments) -> Work:
    """As moe_sum, with 1 FLOP more per element of the result for a factor."""
    x, out = args.tensor(0), args.tensor(1)
    return Work(x.numel + out.numel, pieces(x), pieces(out.like()), x.dtype)


@cost_model("_moe_C::moe_align_block_size", "sgl_kernel::moe_align_block_size", family="moe_routing")
def moe_align(args: Arguments) -> Work:
    """Tokens put in order of their experts: how many are written depends on how they are spread."""
    args.tensor(0)
    raise Unknown("routing_is_values")
