"""Numbers made narrower or wide again, by the ops of serving engines.

FLOPs are a convention: 1 per element for the scale, 1 more where its largest value has to be found first.

Not counted: rounding and clamping; what a scale itself takes to compute; a second pass over an input that
does not stay in the cache.

Source: a convention of our own; the order of arguments as each engine registers its ops: vllm-project/vllm
csrc/torch_bindings.cpp @00256d59; sgl-project/sglang sgl-kernel/csrc/common_extension.cc @0063ef14;
bitsandbytes-foundation/bitsandbytes bitsandbytes/_ops.py @283b57c8 (all read 2026-12-02).
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import FP32, UINT8
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Moved, Work, pieces

_FIXED, _FOUND = 1, 2  # FLOPs per element with a scale that is given, and with one that is looked for
_AWQ_IN_AN_INT = 8


def _quantised(x: Tensor, out: Tensor, per_element: int, read: Moved = None, written: Moved = None) -> Work:
    if out.numel != x.numel:
        raise Unknown("bad_shapes")
    return Work(per_element * x.numel, pieces(x, read), pieces(out.like(), written), x.dtype)


@cost_model(
    "_C::static_scaled_fp8_quant",
    "_C::static_scaled_int8_quant",
    family="quantize",
    params="result x scale azp",
)
def with_a_given_scale(args: Arguments) -> Work:
    """(result, x, scale): 1 FLOP per element."""
    out, x = args.tensor(0), args.tensor(1)
    work = _quantised(x, out, _FIXED, args.maybe(2))
    return Work(work.flops, pieces(work.reads, args.maybe(3)), work.writes, work.dtype)


@cost_model(
    "_C::dynamic_scaled_fp8_quant",
    "_C::dynamic_scaled_int8_quant",
    family="quantize",
    params="result x scale azp",
)
def with_a_found_scale(args: Arguments) -> Work:
    """(result, x, scale): 2 FLOPs per element; the scales (and offsets) are written."""
    out, x = args.tensor(0), args.tensor(1)
    work = _quantised(x, out, _FOUND, None, args.maybe(2))
    return Work(work.flops, work.reads, pieces(work.writes, args.maybe(3)), work.dtype)


@cost_model("_C::dynamic_per_token_scaled_fp8_quant", family="quantize", params="result x scale scale_ub")
def per_token_into(args: Arguments) -> Work:
    """As dynamic_scaled_fp8_quant with a scale per row; an upper bound may be read."""
    return _quantised(args.tensor(1), args.tensor(0), _FOUND, args.maybe(3), args.maybe(2))


@cost_model(
    "sgl_kernel::sgl_per_token_quant_fp8",
    "sgl_kernel::sgl_per_token_group_quant_fp8",
    "sgl_kernel::sgl_per_token_group_quant_int8",
    "_C::per_token_group_fp8_quant",
    "_C::per_token_group_quant_int8",
    family="quantize",
    params="x result scales",
)
def per_group(args: Arguments) -> Work:
    """(x, result, scales): 2 FLOPs per element, a scale per row or group is written."""
    return _quantised(args.tensor(0), args.tensor(1), _FOUND, None, args.maybe(2))


@cost_model("sgl_kernel::sgl_per_tensor_quant_fp8", family="quantize", params="x result scale is_static")
def per_tensor(args: Arguments) -> Work:
    """(x, result, scale, given): 1 FLOP per element with a given scale, which is read, else 2."""
    x, out, scale, given = args.tensor(0), args.tensor(1), args.maybe(2), args.flag(3)
    if given is None:
        raise Unknown("no_values")
    return _quantised(x, out, _FIXED, scale) if given else _quantised(x, out, _FOUND, None, scale)


@cost_model("_C::silu_and_mul_quant", family="quantize", params="result x scale")
def silu_and_mul_quant(args: Arguments) -> Work:
    """As silu_and_mul (2 FLOPs per element of the result) with a given scale (1 more)."""
    out, x = args.tensor(0), args.tensor(1)
    return Work((2 + _FIXED) * out.numel, pieces(x, args.maybe(2)), pieces(out.like()), x.dtype)


@cost_model(
    "_C::awq_dequantize", "sgl_kernel::awq_dequantize", family="quantize", params="weight scales zeros"
)
def awq_dequantize(args: Arguments) -> Work:
    """int32 [k, n/8] that hold eight weights each, their scales and zeros: 2 FLOPs per weight (subtract,
    scale), written in the type of the scales."""
    w, scales = args.tensor(0), args.tensor(1)
    if len(w.dims) != 2:
        raise Unknown("bad_shapes")
    n = product([w.dims[0], w.dims[1] * _AWQ_IN_AN_INT])
    return Work(2 * n, pieces(w, scales, args.maybe(2)), pieces(Piece(n, scales.dtype)), scales.dtype)


@cost_model("bitsandbytes::quantize_blockwise", family="quantize", params="A code blocksize")
def quantize_blockwise(args: Arguments) -> Work:
    """A looked up in a table per block: 2 FLOPs per element; a byte each and an fp32 maximum per block."""
    a, code, block = args.tensor(0), args.maybe(1), args.integer(2)
    if block is None or block < 1:
        raise Unknown("no_values")
    blocks = (a.numel + block - 1) // block
    return Work(_FOUND * a.numel, pieces(a, code), pieces(a.like(UINT8), Piece(blocks, FP32)), a.dtype)


@cost_model("bitsandbytes::dequantize_blockwise", family="quantize", params="A absmax code blocksize dtype")
def dequantize_blockwise(args: Arguments) -> Work:
    """Bytes looked up in a table and scaled per block: 1 FLOP per element, in the type that is asked for."""
    a, out = args.tensor(0), args.dtype_code(4)
    return Work(a.numel, pieces(a, args.maybe(1), args.maybe(2)), pieces(Piece(a.numel, out)), out)


@cost_model(
    "bitsandbytes::dequantize_4bit", family="quantize", params="A absmax blocksize quant_type shape dtype"
)
def dequantize_4bit(args: Arguments) -> Work:
    """As dequantize_blockwise, two elements a byte; the shape of the result is a value."""
    a, n, out = args.tensor(0), product(args.sizes(4)), args.dtype_code(5)
    return Work(n, pieces(a, args.maybe(1)), pieces(Piece(n, out)), out)
