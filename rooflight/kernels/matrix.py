"""What the names of matrix kernels say about their math: one decoder per library's way of writing.

Each takes the lower-cased name and gives a :class:`Math` or ``None`` when the name is not its own.
Repeats in the patterns are bounded wherever what precedes them may repeat too: linear on any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Math:
    """Element type, math type where it differs, and whether the matrix units do the work."""

    dtype: str | None
    tensor_core: bool | None
    compute_dtype: str | None = None


_TOKENS = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "tf32": "tf32",
    "f32": "fp32",
    "fp32": "fp32",
    "f64": "fp64",
    "fp64": "fp64",
    "f8": "fp8",
    "fp8": "fp8",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "i8": "int8",
    "s8": "int8",
    "u8": "int8",
    "int8": "int8",
}


def decode(lower: str) -> Math | None:
    """The first decoder that knows the spelling."""
    for decoder in _DECODERS:
        if math := decoder(lower):
            return math
    return None


# --- cuDNN and cuBLAS, "xmma": sm80_xmma_gemm_f32f32_tf32f32_f32_..., the second group is the math
_ELEMENT = r"(?:bf16|tf32|f16|f32|f64|e4m3|e5m2|i8|u8|i32|cf32|cf64)"
_XMMA = re.compile(rf"_xmma_[a-z0-9_]{{0,80}}?_{_ELEMENT}{{1,2}}_({_ELEMENT}){_ELEMENT}?_{_ELEMENT}(?:_|$)")


def _xmma(lower: str) -> Math | None:
    found = _XMMA.search(lower)
    if not found:
        return None
    dtype = {"cf32": "complex64", "cf64": "complex128"}.get(found[1]) or _TOKENS.get(found[1])
    if "ffma" in lower or "_simt" in lower:
        return Math(dtype, False)
    if re.search(r"_tensor\d", lower) or "warpgroupsize" in lower:
        return Math(dtype, True)
    return Math(dtype, True if dtype in ("bf16", "fp16", "tf32", "int8", "fp8") else None)


# --- instruction shapes: [fp16_]s1688gemm, h16816gemm, z884gemm, s1688wgrad_optimized_tf32, s884cudnn
_SHAPES = "161616|16832|16864|16816|1688|8816|8832|884"
_SHAPE = re.compile(
    rf"(?:(?<![a-z0-9])(bf16|fp16|f16|tf32|int8)_)?(?<![a-z0-9])([shidzc])({_SHAPES})(bf16|f16|tf32|fp16)?_?"
    r"(?:gemm|fprop|dgrad|wgrad|deconv|cudnn)(?:_(?:relu_|optimized_|analytic_|indexed_)*(bf16|fp16|f16|tf32|s8|u8|s4|u4)(?![a-z0-9]))?"
)
_BY_LETTER = {"h": "fp16", "d": "fp64", "z": "complex128", "c": "complex64"}


def _instruction_shape(lower: str) -> Math | None:
    found = _SHAPE.search(lower)
    if not found:
        return None
    prefix, letter, shape, inner, suffix = found.groups()
    written = prefix or inner or suffix
    if written in ("s4", "u4"):
        return Math(None, True)
    if written:
        return Math(_TOKENS[written], True)
    return Math(_BY_LETTER.get(letter) or _unwritten(lower, letter, shape), True)


def _unwritten(lower: str, letter: str, shape: str) -> str | None:
    """A shape alone: on Volta 884 is fp16; on Ampere 1688 with fp32 accumulate is TF32; others are open."""
    if letter == "i":
        return "int8" if shape in ("16832", "8816") else None
    if letter == "s" and shape == "884":
        return "fp16"
    ampere = any(t in lower for t in ("_80_", "ampere", "sm80", "sm86", "sm90"))
    return "tf32" if letter == "s" and shape == "1688" and ampere else None


# --- cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_...: the first group is the left operand.  Of
# block-scaled ones each operand is scale type, "x", element type; a scale of ue8m0 makes it an MX format.
_CUTLASS3 = re.compile(
    r"tensorop_(?:[a-z]?\d{1,4}x\d{1,4}x\d{1,4})?[a-z]{0,8}gemm_(?:block_scaled_)?([a-z0-9]{1,16})_([a-z0-9]{1,16})_"
)
_CUTLASS3_TYPES = {
    **_TOKENS,
    "f32": "tf32",
    "ue8m0xf4": "mxfp4",
    "ue8m0xe2m1": "mxfp4",
    "ue8m0xf8": "fp8",
    "ue8m0xe4m3": "fp8",
    "ue8m0xe5m2": "fp8",
}


def _cutlass3(lower: str) -> Math | None:
    found = _CUTLASS3.search(lower)
    if not found:
        return None
    left, right = (_CUTLASS3_TYPES.get(g) for g in found.groups())
    return Math(left if left == right else None, True)


# --- nvjet_tst_128x64_...: one letter per operand and result, q doubled for fp8
_NVJET = re.compile(r"nvjet_(?:sm\d+_)?([a-z]+)_")


def _nvjet(lower: str) -> Math | None:
    found = _NVJET.match(lower)
    if not found:
        return None
    code = found[1]
    if code.startswith("qq"):
        return Math("fp8", True)
    return Math({"tst": "bf16", "tss": "bf16", "hsh": "fp16", "hss": "fp16", "hhh": "fp16"}.get(code), True)


# --- AMD Tensile: Cijk_Ailk_Bljk_BBS_BH_..., the first letter is the operand type
_TENSILE = re.compile(r"^(?:custom_)?cijk_a[a-z]{2,4}_b[a-z]{2,4}_([a-z0-9]+)_(?:([a-z0-9]+)_)?")
_TENSILE_TYPES = (
    ("4xi8", "int8"),
    ("i8", "int8"),
    ("f8", "fp8"),
    ("b8", "fp8"),
    ("b", "bf16"),
    ("h", "fp16"),
    ("s", "fp32"),
    ("d", "fp64"),
    ("c", "complex64"),
    ("z", "complex128"),
)


def _tensile(lower: str) -> Math | None:
    found = _TENSILE.match(lower)
    if not found:
        return None
    dtype = next((d for letters, d in _TENSILE_TYPES if found[1].startswith(letters)), None)
    if dtype == "fp32" and (found[1] in ("sx", "xs", "xss") or found[2] == "mx"):
        dtype = "tf32"  # XF32: fp32 data, reduced math
    # MI16x16x1 names the matrix instruction; without one it runs on the vector units.
    # Hand-written ones ("Custom_") leave it out, and float8 has no other unit.
    if dtype == "fp8" or re.search(r"_mi\d+x\d+x", lower):
        return Math(dtype, True)
    return Math(dtype, None if lower.startswith("custom_") else False)


# --- AMD implicit GEMM: igemm_fwd_gtcx3_nhwc_bf16_...
_IGEMM = re.compile(r"^igemm_(?:fwd|bwd|wrw)_gtcx?\d?_[a-z]+_(bf16|fp16|fp32|int8)_")


def _igemm(lower: str) -> Math | None:
    found = _IGEMM.match(lower)
    return Math(_TOKENS[found[1]], True) if found else None


# --- MIOpen's fallback: naive_conv_packed_fwd_nhwc_half_double_half, operand, sum and result type
_NAIVE = re.compile(r"^naive_conv_.{1,60}?_(half|float|ushort)_[a-z0-9]{1,8}_[a-z]{1,8}$")


def _naive_conv(lower: str) -> Math | None:
    found = _NAIVE.match(lower)
    return Math({"half": "fp16", "float": "fp32", "ushort": "bf16"}[found[1]], False) if found else None


# --- AMD aiter: aiter::bf16gemm_fp32bf16_..., operand types before the word
_AITER = re.compile(r"aiter::(bf16|f8|fp8|i8|f4)gemm_")


def _aiter_gemm(lower: str) -> Math | None:
    found = _AITER.search(lower)
    if not found:
        return None
    narrow = "mxfp4" if "per1x32fp4" in lower else None
    return Math(narrow if found[1] == "f4" else _TOKENS[found[1]], True)


# --- TensorRT-LLM: bmm_Bfloat16_MxE2m1MxE4m3_Fp32_..., gemm_Bfloat16_E4m3E4m3_Fp32_...
_TRTLLM_ELEMENT = r"(mxe2m1|mxe4m3|e2m1|e4m3|bfloat16|fp16|fp32)"
_TRTLLM = re.compile(rf"^(?:bmm|gemm)_[a-z0-9]+_{_TRTLLM_ELEMENT}{_TRTLLM_ELEMENT}?_fp32_")
_TRTLLM_TYPES = {"mxe2m1": "mxfp4", "mxe4m3": "fp8", "e4m3": "fp8", "bfloat16": "bf16", "fp16": "fp16"}


def _trtllm(lower: str) -> Math | None:
    found = _TRTLLM.match(lower)
    if not found:
        return None
    left = _TRTLLM_TYPES.get(found[1])
    right = _TRTLLM_TYPES.get(found[2] or found[1])
    if left is None or right is None:
        return Math(None, True)
    # Mixed operands run at the rate of the wider one.
    wider = next(d for d in ("bf16", "fp16", "fp8", "mxfp4") if d in (left, right))
    return Math("mxfp4" if "mxfp4" in (left, right) else wider, True, wider)


# --- Triton's matmul_ogs: _matmul_ogs_NNT_bf16xbf16xmxfp4_...: result, activations, weights
_OGS = re.compile(
    r"matmul_ogs_[nt]{1,8}_([a-z0-9]{1,12}?)x([a-z0-9]{1,12}?)x(mxfp4|[a-z]{1,6}\d{1,3})(?![a-z0-9])"
)


def _matmul_ogs(lower: str) -> Math | None:
    found = _OGS.search(lower)
    if not found:
        return None
    activations = _TOKENS.get(found[2])
    if found[3] == "mxfp4":
        return Math("mxfp4", True, activations)
    weights = _TOKENS.get(found[3])
    return Math(weights if weights == activations else None, True)


# --- CUDA-core GEMM: ampere_sgemm_..., volta_gcgemm_..., cutlass_80_simt_dgemm_..., magma, scudnn
_SIMT = re.compile(r"(?:^|(?<=[^a-z]))g?(s|d|h|c|z)(?:gemm(?:ex)?|cudnn)(?:_|$|<)")
_SIMT_TYPES = {"s": "fp32", "d": "fp64", "h": "fp16", "c": "complex64", "z": "complex128"}


def _simt(lower: str) -> Math | None:
    if "igemm_int8" in lower:
        return Math("int8", False)
    found = _SIMT.search(lower)
    if not found:
        return None
    half = re.search(r"(?:volta|turing|ampere|maxwell|pascal)_(fp16|bf16)_", lower)
    return Math(_TOKENS[half[1]] if half else _SIMT_TYPES[found[1]], False)


# --- names in words: deep_gemm::sm90_fp8_gemm_1d2d_impl, _w8a8_block_fp8_matmul
_WORDS = re.compile(
    r"(?<![a-z0-9])(fp8|bf16|fp16|int8)_(?:gemm|matmul|mm|grouped_gemm|blockwise_gemm|mqa_logits|paged_mqa_logits)(?![a-z])"
)


def _words(lower: str) -> Math | None:
    found = _WORDS.search(lower)
    return Math(_TOKENS[found[1]], True) if found else None


# --- attention: fmha_cutlassF_bf16_..., fmhaSm100aKernel_QkvE4m3OBfloat16..., sdpa_..._fprop_f16_...
_QKV = re.compile(r"_qkv(e4m3|bfloat16|fp16|e2m1)")
_ATTENTION_WORDS = ("fmha", "flash", "sdpa", "attention", "mha_", "aiter::pa_", "mla")
_ATTENTION = re.compile(r"_(bf16|fp16|f16|f32|fp8|e4m3)(?![a-z0-9])")


def _attention(lower: str) -> Math | None:
    if found := _QKV.search(lower):
        return Math({"e4m3": "fp8", "bfloat16": "bf16", "fp16": "fp16"}.get(found[1]), True)
    found = _ATTENTION.search(lower) if any(w in lower for w in _ATTENTION_WORDS) else None
    if found:
        dtype = _TOKENS[found[1]]
        return Math(dtype, None if dtype == "fp32" else True)
    return None


_DECODERS: tuple[Callable[[str], Math | None], ...] = (
    _xmma,
    _trtllm,
    _nvjet,
    _tensile,
    _igemm,
    _naive_conv,
    _aiter_gemm,
    _matmul_ogs,
    _cutlass3,
    _instruction_shape,
    _attention,
    _words,
    _simt,
)
