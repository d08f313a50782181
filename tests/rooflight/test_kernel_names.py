# ruff: noqa: E501 - kernel names are as long as they are
"""Kernel names against labels, against spellings that the labels lack, and against hostile text."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from rooflight.kernels import COLLECTIVES, FAMILIES, classify, is_communication
from tests.rooflight.kernel_spellings import SPELLINGS

LABELS = Path(__file__).parent.parent / "data" / "kernel_names.jsonl"
FIELDS = ("family", "dtype", "compute_dtype", "tensor_core", "collective")


def labelled() -> list[dict[str, object]]:
    return [json.loads(line) for line in LABELS.read_text().splitlines()]


@pytest.mark.parametrize("case", labelled(), ids=lambda c: c["id"])
def test_labelled_name(case: dict[str, object]) -> None:
    told = classify(str(case["name"]))
    assert {f: getattr(told, f) for f in FIELDS} == {f: case[f] for f in FIELDS}


# name, family, dtype, tensor_core; written by hand from what each library's naming means.


@pytest.mark.parametrize(("name", "family", "dtype", "unit"), SPELLINGS, ids=[s[0][:50] for s in SPELLINGS])
def test_spelling(name: str, family: str, dtype: str | None, unit: bool | None) -> None:
    told = classify(name)
    assert (told.family, told.dtype, told.tensor_core) == (family, dtype, unit)


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [
        (
            "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "reduce_scatter",
            "bf16",
        ),
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "broadcast", None),
        # Gathers and sends run as bytes whatever they carry.
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "allgather", None),
        ("ncclKernel_AllReduce_TREE_LL_Sum_half(ncclWorkElem)", "allreduce", "fp16"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "allreduce", "bf16"),
        ("void two_shot_all_reduce_kernel<float, 16>(float*)", "allreduce", "fp32"),
        ("deep_ep::internode::dispatch", "all_to_all", None),
        # The operator is followed by the type, whose own name begins with underscores.
        (
            "ncclKernel_AllReduce_RING_LL_Sum___nv_bfloat16(ncclDevComm*, unsigned long, ncclWork*)",
            "allreduce",
            "bf16",
        ),
        ("ncclSymDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(P)", "allreduce", "bf16"),
        ("nvshmemi_transfer_rma_p2p", "unknown", None),
    ],
)
def test_collective(name: str, kind: str, dtype: str | None) -> None:
    told = classify(name)
    assert (told.family, told.collective, told.dtype) == ("collective", kind, dtype)
    assert is_communication(name)


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "void at::native::vectorized_gather_kernel<16, long>",
        "allocate_scatter_indices_kernel",
        "all_the_things",
    ],
)
def test_a_name_that_merely_reduces_or_gathers_does_not_communicate(name: str) -> None:
    assert not is_communication(name)
    assert classify(name).collective is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<half, 8>(P<half>)",
            "allreduce",
        ),
        ("void tensorrt_llm::kernels::twoShotAllReduceKernel<__nv_bfloat16, 8, true, true>(P)", "allreduce"),
        ("void all_reduce_one_shot_push_kernel<__nv_bfloat16, 8>(P)", "allreduce"),
        ("void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel(P)", "all_to_all"),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<2>(int)", "reduce_scatter"),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_ag<2>(int)", "allgather"),
        ("kuserbuffers_pushsend(int*, int*)", "sendrecv"),
    ],
)
def test_a_fused_collective_is_told_but_not_counted_as_communication(name: str, kind: str) -> None:
    told = classify(name)
    assert (told.family, told.collective) == ("collective", kind)
    assert not is_communication(name)  # the list of DEFINITIONS §4 is closed


def test_every_answer_comes_from_the_closed_lists() -> None:
    for case in labelled():
        told = classify(str(case["name"]))
        assert told.family in FAMILIES
        assert told.collective in (*COLLECTIVES, None)


# --- hostile text ----------------------------------------------------------------------------------

HOSTILE = [
    "",
    " ",
    "<" * 65_536,
    ">" * 65_536,
    "(" * 65_536,
    "{lambda(" * 8_192,
    "a<" * 32_768,
    "_Z" + "N" * 65_534,
    "_ZN" + "9" * 65_533,
    "_ZN" + "L" * 65_533,
    "_ZN" + "1aI" * 20_000,
    "Cijk_Ailk_Bljk_" + "B_" * 32_000,
    "nvjet_" + "t" * 65_000,
    "sm80_xmma_gemm_" + "f32_" * 16_000,
    "cutlass_tensorop_s" + "1688" * 16_000,
    "fmha" + "_fmha" * 13_000,
    "fp16_s" * 10_000,
    "matmul_ogs_n_" + "nx" * 32_000,
    "_xmma_" * 10_000,
    "tensorop_s1x1x1gemm_f_" * 3_000,
    "gemm_fp8_" * 7_000,
    "igemm_fwd_gtcx3_" + "a" * 65_000,
    "\x00\x01\ud800 \u202e<script>alert(1)</script>",
]


@pytest.mark.parametrize("name", HOSTILE, ids=[f"{h[:12]!r}-{len(h)}" for h in HOSTILE])
def test_hostile_text_is_answered_in_linear_time(name: str) -> None:
    began = time.process_time()
    told = classify(name)
    assert told.name == name
    assert told.family in FAMILIES
    assert len(told.short_name) <= 120
    assert time.process_time() - began < 0.5


def test_twice_the_length_costs_no_more_than_the_limit_allows() -> None:
    # Both are longer than what is looked at, so the same work is done.
    assert classify("x<" * 20_000).short_name == classify("x<" * 40_000).short_name
