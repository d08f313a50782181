"""Ops of libraries outside torch: what their arguments tell, with the arithmetic; and what they do not."""

from __future__ import annotations

import json

import pytest

from rooflight.cli.operands import call_of
from rooflight.cost import Cost, estimate

N = None


def cost(op: str, *arguments: object) -> Cost:
    """The cost of an op whose plain dims are bf16."""
    return estimate(call_of(op, json.dumps(arguments), "bf16"))


def figures(found: Cost) -> tuple[int | None, int | None, int | None]:
    return found.flops, found.bytes_read, found.bytes_written


# --- attention -----------------------------------------------------------------------------------

# 2 batches, 64 queries and 128 keys, 8 query heads over 2 key heads, dims 32 and 16.
Q, K, V = [2, 64, 8, 32], [2, 128, 2, 32], [2, 128, 2, 16]
Q_B, K_B, V_B = 2 * 2 * 64 * 8 * 32, 2 * 2 * 128 * 2 * 32, 2 * 2 * 128 * 2 * 16
OUT, LSE = [2, 64, 8, 16], "fp32[2, 8, 64]"
OUT_B, LSE_B = 2 * 2 * 64 * 8 * 16, 4 * 2 * 8 * 64
DENSE = 64 * 128
# Anchored at the bottom right, query i sees 64 + i + 1 keys: 64 * 64 + 64 * 65 / 2.
CAUSAL = 64 * 64 + 64 * 65 // 2
# From the top left it sees i + 1: 64 * 65 / 2.
TOP_LEFT = 64 * 65 // 2
# Ten keys before the anchor and none behind: 11 each, as all queries have so many.
WINDOW = 64 * 11


def fa3(causal: bool = False, left: int = -1, **given: object) -> list[object]:
    rest = [
        given.get(n) for n in ("k_new", "v_new", "q_v", "out", "cu_q", "cu_k", "cu_new", "used_q", "used_k")
    ]
    more = [N, N, given.get("page_table"), N, N, N, N, N, N, N, N]
    return [Q, K, V, *rest, *more, 0.1, causal, left, -1 if left < 0 else 0, given.get("chunk", 0), 0.0]


@pytest.mark.parametrize("op", ["flash_attn_3::fwd", "flash_attn_3::_flash_attn_forward"])
@pytest.mark.parametrize(
    ("causal", "left", "pairs"), [(False, -1, DENSE), (True, -1, CAUSAL), (False, 10, WINDOW)]
)
def test_flash_attention_3(op: str, causal: bool, left: int, pairs: int) -> None:
    found = cost(op, *fa3(causal, left))
    assert figures(found) == (2 * 2 * 8 * pairs * (32 + 16), Q_B + K_B + V_B, OUT_B + LSE_B)
    assert (found.family, found.matrix, found.dtype) == ("attention_fwd", True, "bf16")


def test_a_query_over_the_values_is_one_product_more() -> None:
    """q_v [2, 64, 8, 16] meets every value once more: the value dim counts twice."""
    found = cost("flash_attn_3::fwd", *fa3(q_v=OUT))
    assert figures(found) == (2 * 2 * 8 * DENSE * (32 + 2 * 16), Q_B + K_B + V_B + OUT_B, OUT_B + LSE_B)


def test_float8_attention_writes_bf16() -> None:
    arguments = fa3()
    arguments[:3] = [f"fp8{t}" for t in (Q, K, V)]
    found = cost("flash_attn_3::fwd", *arguments)
    assert figures(found)[1:] == ((Q_B + K_B + V_B) // 2, OUT_B + LSE_B)
    assert found.dtype == "fp8"


@pytest.mark.parametrize("name", ["k_new", "cu_q", "cu_k", "used_q", "used_k", "page_table"])
def test_lengths_and_pages_of_flash_attention_3_are_values(name: str) -> None:
    found = cost("flash_attn_3::fwd", *fa3(**{name: "int32[3]"}))
    assert (figures(found), found.reason) == ((N, N, N), "lengths_are_values")


def test_a_mask_in_chunks_has_no_rule_here() -> None:
    found = cost("flash_attn_3::fwd", *fa3(chunk=16))
    assert (figures(found), found.reason) == ((N, N, N), "mask_unknown")


# dO, Q, K, V, O and lse are read; dQ, dK and dV written, as large as what they belong to.
BACKWARD = (OUT_B + Q_B + K_B + V_B + OUT_B + LSE_B, Q_B + K_B + V_B)


@pytest.mark.parametrize(
    ("op", "between"),
    [
        ("flash_attn_3::bwd", [Q, K, V, N, N, N, N, 64, 128, 0.1]),
        ("flash_attn_3::_flash_attn_backward", [N, N, N, N, 64, 128, Q, K, V, 0.1]),
        ("aiter::mha_bwd", [0.0, 0.1]),
        ("aiter::wrapper_fmha_v3_bwd", [0.0, 0.1]),
        ("flashattn::_flash_attn_backward", [Q, K, V, 0.0, 0.1]),
    ],
)
@pytest.mark.parametrize(("causal", "pairs"), [(False, DENSE), (True, CAUSAL)])
def test_backward_is_three_products_over_the_query_dim_and_two_over_the_value_dim(
    op: str, between: list[object], causal: bool, pairs: int
) -> None:
    found = cost(op, OUT, Q, K, V, OUT, LSE, *between, causal, -1, -1, 0.0, False)
    assert figures(found) == (2 * 2 * 8 * pairs * (3 * 32 + 2 * 16), *BACKWARD)


@pytest.mark.parametrize("op", ["aiter::mha_fwd", "aiter::fmha_v3_fwd", "aiter::wrapper_mha_fwd"])
def test_aiter_writes_the_log_sum_exp_when_its_flag_is_set(op: str) -> None:
    flops = 2 * 2 * 8 * CAUSAL * (32 + 16)
    with_lse = cost(op, Q, K, V, 0.0, 0.1, True, -1, -1, True, False)
    without = cost(op, Q, K, V, 0.0, 0.1, True, -1, -1, False, True)
    later = cost(op, Q, K, V, 0.0, 0.1, True, -1, -1, 0, True, False)  # a count of sink tokens before it
    assert figures(with_lse) == figures(later) == (flops, Q_B + K_B + V_B, OUT_B + LSE_B)
    assert figures(without) == (flops, Q_B + K_B + V_B, OUT_B)


@pytest.mark.parametrize(("mask", "pairs"), [(0, DENSE), (1, TOP_LEFT), (2, CAUSAL)])
@pytest.mark.parametrize("lse", [True, False])
def test_xformers_cutlass_in_both_orders_of_its_arguments(mask: int, pairs: int, lse: bool) -> None:
    op, bias = "xformers::efficient_attention_forward_cutlass", [2, 8, 64, 128]
    late = cost(op, Q, K, V, bias, N, N, N, N, 0.0, mask, lse, 0.1, N, N)
    early = cost(op, Q, K, V, bias, N, N, N, 0.0, lse, mask, 0.1, N, N)
    bias_bytes = 2 * 2 * 8 * 64 * 128
    read, written = Q_B + K_B + V_B + bias_bytes, OUT_B + LSE_B * lse
    assert figures(late) == figures(early) == (2 * 2 * 8 * pairs * (32 + 16), read, written)


def test_xformers_cutlass_with_what_is_not_known_is_not_known() -> None:
    op = "xformers::efficient_attention_forward_cutlass"
    assert cost(op, Q, K, V, N, N, N, N, N, 0.0, 1, True, 0.1, N, 32).reason == "mask_unknown"
    assert cost(op, Q, K, V, N, N, N, N, N, 0.0, 7, True, 0.1, N, N).reason == "mask_unknown"
    assert cost(op, Q, K, V, N, N, N, True, False).reason == "mask_unknown"
    assert cost(op, Q, K, V, N, "int32[3]", "int32[3]", 64, 128, 0.0, 0, True).reason == "lengths_are_values"


def test_xformers_cutlass_backward_in_both_orders() -> None:
    op, bias = "xformers::efficient_attention_backward_cutlass", [2, 8, 64, 128]
    late = cost(
        op, OUT, Q, K, V, bias, OUT, N, N, 64, 128, LSE, 0.0, "int64[]", "int64[]", 2, True, 0.1, N, N
    )
    early = cost(op, OUT, Q, K, V, bias, N, N, 64, 128, LSE, OUT, 0.0, 1, 2, 2, 0.1, -1, N)
    bias_bytes, flops = 2 * 2 * 8 * 64 * 128, 2 * 2 * 8 * CAUSAL * (3 * 32 + 2 * 16)
    assert figures(late) == (flops, BACKWARD[0] + bias_bytes, BACKWARD[1] + bias_bytes)
    assert figures(early) == (flops, BACKWARD[0] + bias_bytes, BACKWARD[1])


def test_xformers_flash() -> None:
    arguments = [Q, K, V, N, N, N, 64, 128, 0.0, 0.1, True, -1, -1, False, N]
    found = cost("xformers_flash::flash_fwd", *arguments)
    assert figures(found) == (2 * 2 * 8 * CAUSAL * (32 + 16), Q_B + K_B + V_B, OUT_B + LSE_B)
    arguments[3] = "int32[3]"
    assert cost("xformers_flash::flash_fwd", *arguments).reason == "lengths_are_values"


def test_partial_attentions_are_merged() -> None:
    """[128, 8, 16] in bf16 and fp32 sums [8, 128]: 3 FLOPs an element; two of each read, one written."""
    o, lse = [128, 8, 16], "fp32[8, 128]"
    figures_ = (3 * 128 * 8 * 16, 2 * (2 * 128 * 8 * 16 + 4 * 8 * 128), 2 * 128 * 8 * 16 + 4 * 8 * 128)
    assert figures(cost("_C::merge_attn_states", o, lse, o, lse, o, lse, N)) == figures_
    assert figures(cost("sgl_kernel::merge_state_v2", o, lse, o, lse, o, lse)) == figures_
    assert figures(cost("flashinfer::merge_state", o, lse, o, lse)) == figures_
    assert cost("_C::merge_attn_states", o, lse, o, lse, o, lse, 100).reason == "lengths_are_values"


# --- products of quantised operands ----------------------------------------------------------------

M, KK, NN = 16, 64, 32
FLOPS = 2 * M * NN * KK


@pytest.mark.parametrize(
    ("op", "arguments", "read", "written"),
    [
        # fp8 operands, fp32 scales per row and column, a bf16 bias, bf16 out.
        (
            "_C::cutlass_scaled_mm",
            [[M, NN], f"fp8[{M}, {KK}]", f"fp8[{KK}, {NN}]", f"fp32[{M}, 1]", f"fp32[1, {NN}]", [NN]],
            M * KK + KK * NN + 4 * M + 4 * NN + 2 * NN,
            2 * M * NN,
        ),
        # int8 with a correction per column in int32 and an offset per row.
        (
            "_C::cutlass_scaled_mm_azp",
            [
                *[[M, NN], f"int8[{M}, {KK}]", f"int8[{KK}, {NN}]", "fp32[1]", "fp32[1]"],
                *[f"int32[{NN}]", f"int32[{M}]", N],
            ],
            M * KK + KK * NN + 4 + 4 + 4 * NN + 4 * M,
            2 * M * NN,
        ),
        (
            "sgl_kernel::dsv3_router_gemm",
            [f"fp32[{M}, {NN}]", [M, KK], [NN, KK]],
            2 * (M + NN) * KK,
            4 * M * NN,
        ),
        # Two values a byte: [16, 32] and [32, 32] bytes are k = 64.
        (
            "_C::cutlass_scaled_fp4_mm",
            [[M, NN], f"uint8[{M}, 32]", f"uint8[{NN}, 32]", f"fp8[{M}, 4]", f"fp8[{NN}, 4]", "fp32[1]"],
            32 * M + 32 * NN + 4 * M + 4 * NN + 4,
            2 * M * NN,
        ),
        # The type code 15 is bf16.
        (
            "sgl_kernel::fp8_scaled_mm",
            [f"fp8[{M}, {KK}]", f"fp8[{KK}, {NN}]", f"fp32[{M}]", f"fp32[{NN}]", 15, N],
            M * KK + KK * NN + 4 * M + 4 * NN,
            2 * M * NN,
        ),
        (
            "aiter::gemm_a8w8_ck",
            [f"int8[{M}, {KK}]", f"int8[{NN}, {KK}]", f"fp32[{M}, 1]", f"fp32[1, {NN}]", [M, NN], N, 0],
            M * KK + KK * NN + 4 * M + 4 * NN,
            2 * M * NN,
        ),
        (
            "vllm::rocm_aiter_gemm_a8w8",
            [f"int8[{M}, {KK}]", f"int8[{NN}, {KK}]", f"fp32[{M}, 1]", f"fp32[1, {NN}]", [NN], 15],
            M * KK + KK * NN + 4 * M + 4 * NN + 2 * NN,
            2 * M * NN,
        ),
        (
            "vllm::rocm_aiter_gemm_w8a8_blockscale",
            [f"fp8[{M}, {KK}]", f"fp8[{NN}, {KK}]", f"fp32[{M}, 1]", "fp32[1, 1]", "[128, 128]", 6],
            M * KK + KK * NN + 4 * M + 4,
            4 * M * NN,
        ),
        # 4-bit weights: 8 in an int32 along k; one group of zeros (packed along n) and scales; an order of k.
        (
            "_C::gptq_gemm",
            [[M, KK], f"int32[8, {NN}]", "int32[1, 4]", f"fp16[1, {NN}]", f"int32[{KK}]", True, False, 4],
            2 * M * KK + 4 * 8 * NN + 4 * 4 + 2 * NN + 4 * KK,
            2 * M * NN,
        ),
        # 8 in an int32 along n.
        (
            "_C::awq_gemm",
            [[M, KK], f"int32[{KK}, 4]", f"fp16[1, {NN}]", "int32[1, 4]", 8],
            2 * M * KK + 4 * KK * 4 + 2 * NN + 4 * 4,
            2 * M * NN,
        ),
        # 16 x 16 tiles: [k / 16, n * 16 / 8]; bias, scales; the workspace is left out.
        (
            "_C::marlin_gemm",
            [
                *[[M, KK], N, f"int32[4, {2 * NN}]", [NN], f"fp16[1, {NN}]", N, N, N, N, N, "int32[132]"],
                *[77, M, NN, KK, True, False, True, False],
            ],
            2 * M * KK + 4 * 4 * 2 * NN + 2 * NN + 2 * NN,
            2 * M * NN,
        ),
        (
            "_C::machete_mm",
            [[M, KK], f"int32[8, {NN}]", 1, N, f"fp16[1, {NN}]", N, N, N, N, N],
            2 * M * KK + 4 * 8 * NN + 2 * NN,
            2 * M * NN,
        ),
        (
            "_C::allspark_w8a16_gemm",
            [[M, KK], f"uint8[{KK}, {NN}]", [1, NN], N, NN, -1, 108, 80, 64, False, True],
            2 * M * KK + KK * NN + 2 * NN,
            2 * M * NN,
        ),
        ("_C::ggml_mul_mat_a8", ["uint8[32, 36]", [M, KK], 2, NN], 32 * 36 + 2 * M * KK, 2 * M * NN),
        (
            "bitsandbytes::int8_linear_matmul",
            [f"int8[{M}, {KK}]", f"int8[{NN}, {KK}]"],
            M * KK + NN * KK,
            4 * M * NN,
        ),
        # 4-bit weights two a byte, an fp32 maximum per block of 64, a table of 16.
        (
            "bitsandbytes::gemv_4bit",
            [[M, KK], "uint8[1024, 1]", f"[{NN}, {KK}]", "fp32[32]", "fp32[16]", 64],
            2 * M * KK + 1024 + 4 * 32 + 4 * 16,
            2 * M * NN,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_quantised_product(op: str, arguments: list[object], read: int, written: int) -> None:
    found = cost(op, *arguments)
    assert figures(found) == (FLOPS, read, written)
    assert (found.family, found.matrix) == ("gemm", True)


def test_the_type_of_the_arithmetic_has_the_roof() -> None:
    assert cost("_C::cutlass_scaled_mm", [8, 8], "fp8[8, 8]", "fp8[8, 8]").dtype == "fp8"
    assert cost("_C::cutlass_scaled_fp4_mm", [8, 8], "uint8[8, 4]", "uint8[8, 4]").dtype == "fp4"
    assert cost("_C::awq_gemm", [8, 8], "int32[8, 1]", [1, 8], "int32[1, 1]", 8).dtype == "bf16"


def test_a_number_of_bits_as_large_as_m_is_no_size() -> None:
    """8 rows and 8 bits: of (8, 8, 64) and (8, 64, 32) before k the last triple that fits m and k counts."""
    head = [[8, 64], N, "int32[4, 64]", [1, 64], N, N, N, N, "int32[132]"]
    assert cost("_C::gptq_marlin_gemm", *head, 8, 8, 64, 64, True).flops == 2 * 8 * 64 * 64
    assert cost("_C::gptq_marlin_gemm", *head, 8, 8, 32, 64, True).flops == 2 * 8 * 32 * 64
    assert cost("_C::gptq_marlin_gemm", *head, 8).reason == "no_values"


@pytest.mark.parametrize(
    ("op", "arguments"),
    [
        ("_C::cutlass_scaled_mm", [[8, 8], "fp8[8, 16]", "fp8[8, 8]"]),
        ("_C::cutlass_scaled_fp4_mm", [[8, 8], "uint8[8, 4]", "uint8[8, 8]"]),
        ("sgl_kernel::fp8_scaled_mm", ["fp8[8, 16]", "fp8[8, 8]"]),
        ("aiter::gemm_a8w8_ck", ["int8[8, 16]", "int8[8, 16]", N, N, [8, 9]]),
        ("_C::awq_gemm", [[8, 16], "int32[8, 1]"]),
        ("bitsandbytes::int8_linear_matmul", ["int8[8, 16]", "int8[8, 8]"]),
        ("bitsandbytes::gemv_4bit", [[8, 16], "uint8[64, 1]", "[8, 8]"]),
    ],
)
def test_a_product_that_does_not_fit_is_refused(op: str, arguments: list[object]) -> None:
    found = cost(op, *arguments)
    assert (figures(found), found.reason) == ((N, N, N), "bad_shapes")


# --- quantisation, rotation, routing ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "arguments", "expected"),
    [
        # 16 x 64 bf16 to bytes with one fp32 scale: 1 FLOP an element, 2 where the scale is looked for.
        ("_C::static_scaled_fp8_quant", ["fp8[16, 64]", [16, 64], "fp32[1]"], (1024, 2048 + 4, 1024)),
        (
            "_C::static_scaled_int8_quant",
            ["int8[16, 64]", [16, 64], "fp32[1]", "int32[1]"],
            (1024, 2056, 1024),
        ),
        ("_C::dynamic_scaled_fp8_quant", ["fp8[16, 64]", [16, 64], "fp32[1]"], (2048, 2048, 1024 + 4)),
        (
            "_C::dynamic_per_token_scaled_fp8_quant",
            ["fp8[16, 64]", [16, 64], "fp32[16, 1]", "fp32[1]"],
            (2048, 2048 + 4, 1024 + 64),
        ),
        # Groups of 32: two scales a row.
        (
            "sgl_kernel::sgl_per_token_group_quant_fp8",
            [[16, 64], "fp8[16, 64]", "fp32[16, 2]", 32],
            (2048, 2048, 1024 + 128),
        ),
        (
            "sgl_kernel::sgl_per_tensor_quant_fp8",
            [[16, 64], "fp8[16, 64]", "fp32[1]", True],
            (1024, 2052, 1024),
        ),
        (
            "sgl_kernel::sgl_per_tensor_quant_fp8",
            [[16, 64], "fp8[16, 64]", "fp32[1]", False],
            (2048, 2048, 1028),
        ),
        # Two halves of 64 into 64 bytes: 3 FLOPs an element of the result.
        ("_C::silu_and_mul_quant", ["fp8[16, 64]", [16, 128], "fp32[1]"], (3 * 1024, 4096 + 4, 1024)),
        # [64, 4] int32 hold [64, 32] weights; one group of scales and zeros.
        (
            "_C::awq_dequantize",
            ["int32[64, 4]", "fp16[1, 32]", "int32[1, 4]", 0, 0, 0],
            (2 * 64 * 32, 4 * 256 + 2 * 32 + 4 * 4, 2 * 64 * 32),
        ),
        # 1000 elements in blocks of 256: 4 maxima; a table of 256.
        ("bitsandbytes::quantize_blockwise", [[1000], "fp32[256]", 256], (2000, 2000 + 1024, 1000 + 16)),
        (
            "bitsandbytes::dequantize_blockwise",
            ["uint8[1000]", "fp32[4]", "fp32[256]", 256, 5],
            (1000, 2040, 2000),
        ),
        (
            "bitsandbytes::dequantize_4bit",
            ["uint8[500, 1]", "fp32[16]", 64, "nf4", "[10, 100]", 15],
            (1000, 500 + 64, 2000),
        ),
        # 4 tokens; 8 heads of 64 and 2 of 64, of which 32 are turned: 4 * 10 * 32 elements, 3 FLOPs each.
        (
            "_C::rotary_embedding",
            ["int64[4]", [4, 512], [4, 128], 64, [2048, 32], True],
            (3 * 1280, 8 * 4 + 2 * 4 * 32 + 2 * 1280, 2 * 1280),
        ),
        (
            "_C::rotary_embedding",
            ["int64[4]", [4, 512], N, 64, [2048, 64], True],
            (6144, 32 + 512 + 4096, 4096),
        ),
        (
            "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
            [[4, 8, 64], [4, 2, 64], [4, 8, 64], [4, 2, 64], "fp32[2048, 32]", "int64[4]", False, True, 0, N],
            (3 * 1280, 2 * 2560 + 32 + 4 * 128, 2 * 2560),
        ),
        # 16 x 64: 3 + 1 (weight) and 1 for the scale; dynamic 2, and 1 for the residual.
        (
            "_C::rms_norm_static_fp8_quant",
            ["fp8[16, 64]", [16, 64], [64], "fp32[1]", 1e-5],
            (5 * 1024, 2048 + 128 + 4, 1024),
        ),
        (
            "_C::fused_add_rms_norm_static_fp8_quant",
            ["fp8[16, 64]", [16, 64], [16, 64], [64], "fp32[1]", 1e-5],
            (6 * 1024, 2 * 2048 + 128 + 4, 1024 + 2048),
        ),
        (
            "_C::rms_norm_dynamic_per_token_quant",
            ["fp8[16, 64]", [16, 64], [64], "fp32[16, 1]", 1e-5, N, [16, 64]],
            (7 * 1024, 2 * 2048 + 128, 1024 + 64 + 2048),
        ),
        # 4 tokens choose 2 of 8 experts.
        (
            "_moe_C::topk_softmax",
            ["fp32[4, 2]", "int32[4, 2]", "int32[4, 2]", "fp32[4, 8]", False],
            (N, 4 * 32, 3 * 4 * 8),
        ),
        ("sgl_kernel::topk_softmax", ["fp32[4, 2]", "int32[4, 2]", [4, 8], False], (N, 2 * 32, 2 * 4 * 8)),
        ("_moe_C::moe_sum", [[4, 2, 64], [4, 64]], (512, 1024, 512)),
        ("sgl_kernel::moe_sum_reduce", [[4, 2, 64], [4, 64], 2.5], (512 + 256, 1024, 512)),
        # 512 + 64 of each of 4 tokens go into a cache of bytes.
        (
            "_C_cache_ops::concat_and_cache_mla",
            [[4, 512], [4, 64], "uint8[100, 16, 576]", "int64[4]"],
            (0, 2 * 4 * 576 + 32, 4 * 576),
        ),
        # [2, 8, 100] with 4 taps: 2 * 1600 * 4; both gradients twice that.
        (
            "DaoAILab::_causal_conv1d_fwd_cpp",
            [[2, 8, 100], [8, 4], [8], N, N, [2, 8, 100], N, True],
            (12_800, 2 * (1600 + 32 + 8), 3200),
        ),
        (
            "DaoAILab::_causal_conv1d_bwd_cpp",
            [[2, 8, 100], [8, 4], [8], [2, 8, 100], N, N, N, [2, 8, 100], "fp32[8, 4]", "fp32[8]", N, True],
            (25_600, 2 * (1600 + 32 + 8 + 1600), 3200 + 128 + 32),
        ),
        # The result comes first in later releases, and is not read: 16 x 64 and a weight of 64 are.
        ("flashinfer::rmsnorm", [[16, 64], [16, 64], [64], 1e-5, False], (4096, 2048 + 128, 2048)),
        ("flashinfer::rmsnorm", [[16, 64], [64], 1e-5], (4096, 2048 + 128, 2048)),
        ("_C::gelu_new", [[4, 64], [4, 64]], (256, 512, 512)),
        ("_C::mul_and_silu", [[4, 64], [4, 128]], (512, 1024, 512)),
        # Gradient and parameter of 100 in bf16 and fp32, two states in bytes.
        (
            "bitsandbytes::optimizer_update_8bit_blockwise",
            ["adam", [100], "fp32[100]", "uint8[100]", "uint8[100]"],
            (N, 200 + 400 + 200, 400 + 200),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_op_of_a_serving_engine(
    op: str, arguments: list[object], expected: tuple[int | None, int, int]
) -> None:
    assert figures(cost(op, *arguments)) == expected


def test_collectives_of_serving_engines() -> None:
    """1024 bf16 elements; 8 ranks gather 8192, of whose 16,384 bytes 7/8 cross the link."""
    gathered = cost("vllm::all_gather", [1024], 0, 8, "tp:0")
    assert (*figures(gathered), gathered.link_bytes) == (0, 2048, 16_384, 14_336)
    scattered = cost("vllm::reduce_scatter", [1024], 0, 8, "tp:0")
    assert (*figures(scattered), scattered.link_bytes) == (0, 2048, 256, 1792)
    reduced = cost("_C_custom_ar::all_reduce", 1234, [1024], [1024], 0, 0)
    assert (*figures(reduced), reduced.link_bytes) == (0, 2048, 2048, N)


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("flashattn::_flash_attn_varlen_forward", "lengths_are_values"),
        ("aiter::wrapper_mha_varlen_fwd", "lengths_are_values"),
        ("sgl_kernel::cutlass_mla_decode", "lengths_are_values"),
        ("vllm::unified_attention_with_output", "lengths_are_values"),
        ("vllm::moe_forward", "routing_is_values"),
        ("_moe_C::moe_wna16_marlin_gemm", "routing_is_values"),
        ("_moe_C::moe_align_block_size", "routing_is_values"),
        ("_C::selective_scan_fwd", "no_convention"),
    ],
)
def test_what_rests_on_values_is_unknown_with_its_reason(op: str, reason: str) -> None:
    found = cost(op, [16, 8, 64], [16, 8, 64], [16, 8, 64])
    assert (figures(found), found.origin, found.reason) == ((N, N, N), "unknown", reason)


def test_a_rotation_that_fills_a_cache_is_unknown() -> None:
    qk = [[4, 8, 64], [4, 2, 64]]
    arguments = [*qk, *qk, "fp32[2048, 64]", "int64[4]", False, True, 0, [4, 2, 64]]
    assert cost("sgl_kernel::apply_rope_pos_ids_cos_sin_cache", *arguments).reason == "roles_unknown"
