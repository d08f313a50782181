"""Mixtures of experts in one op.

Not counted: the choice of the experts and the sum over their results, where the products are known.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Unknown
from rooflight.cost.work import Work


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
    family="moe_gemm",
    matrix=True,
)
def moe_forward(args: Arguments) -> Work:
    """The weights of the experts and the routing are hidden in the op: unknown on purpose."""
    del args
    raise Unknown("routing_is_values")
