"""Matrix products of quantised operands, by the ops of serving engines: 2*m*n*k FLOPs, as of plain ones.

Packed weights are read as they lie; what unpacking computes is not counted, and the result's size comes from
the scales, from values or from the result itself where the packing hides it.

Not counted: unpacking and scaling, an addition of the bias, sums of a split over the inner dim, a workspace.

Source: the order of arguments as each engine registers its ops: vllm-project/vllm csrc/torch_bindings.cpp
@00256d59; sgl-project/sglang sgl-kernel/csrc/common_extension.cc @0063ef14; ROCm/aiter
aiter/ops/gemm_op_a8w8.py; bitsandbytes-foundation/bitsandbytes bitsandbytes/_ops.py @283b57c8 (all read
2026-12-02).  The FLOPs are those of gemm.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.gemm import multiply_adds
from rooflight.cost.promotion import FP16, INT32
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import COMPOSITE, Work, pieces
from rooflight.dtypes import BY_NAME, DType

_FP4 = BY_NAME["fp4"]
_FP4_IN_A_BYTE, _AWQ_IN_AN_INT = 2, 8


def _product(x: Tensor, n: int, more: list[Tensor | None], out: DType | None, math: DType | None) -> Work:
    """x [.., k] with a weight of n columns, wherever it is among what is read."""
    if not x.dims:
        raise Unknown("bad_shapes")
    rows = product(x.dims[:-1])
    flops = multiply_adds(1, rows, n, x.dims[-1], None)
    return Work(flops, pieces(x, more), pieces(Piece(product([rows, n]), out)), math)


def _given(args: Arguments, *without: int) -> list[Tensor | None]:
    """Every tensor that was given, but those at these places."""
    return [args.maybe(i) for i in range(len(args)) if i not in without]


def _matrix(t: Tensor) -> Tensor:
    if len(t.dims) != 2:
        raise Unknown("bad_shapes")
    return t


@cost_model(
    "_C::cutlass_scaled_mm",
    "_C::cutlass_scaled_mm_azp",
    "_C::dsv3_fused_a_gemm",
    "sgl_kernel::dsv3_fused_a_gemm",
    "sgl_kernel::dsv3_router_gemm",
    family="gemm",
    matrix=True,
    params="result A B scales_a scales_b",
)
def product_into(args: Arguments) -> Work:
    """(result, A, B, scales and more): A [m, k] with B of k x n elements into the result [m, n].  Everything
    but the result is read."""
    out, a, b = (_matrix(args.tensor(i)) for i in range(3))
    if a.dims[0] != out.dims[0] or b.numel != a.dims[1] * out.dims[1]:
        raise Unknown("bad_shapes")
    flops = multiply_adds(1, out.dims[0], out.dims[1], a.dims[1], None)
    return Work(flops, pieces(a, b, _given(args, 0, 1, 2)), pieces(out.like()), a.dtype)


@cost_model(
    "_C::cutlass_scaled_fp4_mm",
    "sgl_kernel::cutlass_scaled_fp4_mm",
    family="gemm",
    matrix=True,
    params="result A B scales_a scales_b alpha",
)
def fp4_product_into(args: Arguments) -> Work:
    """As cutlass_scaled_mm with B [n, k]; a byte of A and B holds two float4 values."""
    out, a, b = (_matrix(args.tensor(i)) for i in range(3))
    if out.dims != (a.dims[0], b.dims[0]) or a.dims[1] != b.dims[1]:
        raise Unknown("bad_shapes")
    flops = multiply_adds(1, a.dims[0], b.dims[0], a.dims[1] * _FP4_IN_A_BYTE, None)
    return Work(flops, pieces(a, b, _given(args, 0, 1, 2)), pieces(out.like()), _FP4)


@cost_model(
    "sgl_kernel::fp8_scaled_mm",
    "sgl_kernel::int8_scaled_mm",
    "sgl_kernel::fp8_blockwise_scaled_mm",
    family="gemm",
    matrix=True,
    params="A B scales_a scales_b out_dtype bias",
)
def scaled_product(args: Arguments) -> Work:
    """A [m, k] x B [k, n] with scales, into the type that is asked for."""
    a, b = _matrix(args.tensor(0)), _matrix(args.tensor(1))
    if a.dims[1] != b.dims[0]:
        raise Unknown("bad_shapes")
    return _product(a, b.dims[1], [b, *_given(args, 0, 1)], args.dtype_code(4), a.dtype)


@cost_model(
    "aiter::gemm_a8w8_ck",
    "aiter::wrapper_gemm_a8w8_ck",
    "aiter::gemm_a8w8_bpreshuffle_ck",
    "aiter::wrapper_gemm_a8w8_bpreshuffle_ck",
    family="gemm",
    matrix=True,
    params="XQ WQ x_scale w_scale result bias splitK",
)
def aiter_product(args: Arguments) -> Work:
    """XQ [m, k] with WQ [n, k]; the result is the fifth argument."""
    x, w, out = args.tensor(0), _matrix(args.tensor(1)), args.tensor(4)
    if not x.dims or x.dims[-1] != w.dims[1] or out.numel * x.dims[-1] != x.numel * w.dims[0]:
        raise Unknown("bad_shapes")
    return _product(x, w.dims[0], [w, *_given(args, 0, 1, 4)], out.dtype, x.dtype)


@cost_model(
    "vllm::rocm_aiter_gemm_a8w8",
    "vllm::rocm_aiter_gemm_w8a8",
    "vllm::rocm_aiter_gemm_a8w8_blockscale",
    "vllm::rocm_aiter_gemm_w8a8_blockscale",
    "vllm::rocm_aiter_triton_gemm_a8w8_blockscale",
    family="gemm",
    matrix=True,
    params="A B scales_a scales_b",
)
def rocm_product(args: Arguments) -> Work:
    """A [m, k] with B [n, k] and scales, into the type that is asked for after them, behind a bias or the
    size of blocks where there is one."""
    a, b = args.tensor(0), _matrix(args.tensor(1))
    if not a.dims or a.dims[-1] != b.dims[1]:
        raise Unknown("bad_shapes")
    out = args.dtype_code(4) or args.dtype_code(5)
    return _product(a, b.dims[0], [b, *_given(args, 0, 1)], out, a.dtype)


@cost_model(
    "_C::gptq_gemm", "sgl_kernel::gptq_gemm", family="gemm", matrix=True, params="A weight zeros scales g_idx"
)
def gptq_product(args: Arguments) -> Work:
    """A [m, k] with int32 [.., n] that hold several weights each along k.  Calculates in A's type."""
    a, w = _matrix(args.tensor(0)), _matrix(args.tensor(1))
    return _product(a, w.dims[1], [w, *_given(args, 0, 1)], a.dtype, a.dtype)


@cost_model("_C::awq_gemm", family="gemm", matrix=True, params="A weight scales zeros split_k_iters")
def awq_product(args: Arguments) -> Work:
    """A [m, k] with int32 [k, n/8] that hold eight weights each along n.  Calculates in A's type."""
    a, w = _matrix(args.tensor(0)), _matrix(args.tensor(1))
    if w.dims[0] != a.dims[1]:
        raise Unknown("bad_shapes")
    return _product(a, w.dims[1] * _AWQ_IN_AN_INT, [w, *_given(args, 0, 1)], a.dtype, a.dtype)


@cost_model(
    "_C::marlin_gemm",
    "_C::gptq_marlin_gemm",
    "sgl_kernel::gptq_marlin_gemm",
    family="gemm",
    matrix=True,
    params="A C weight",
)
def marlin_product(args: Arguments) -> Work:
    """A [m, k] with repacked weights, whose columns the sizes m, n, k among the values tell.  Calculates in
    A's type, which the result has where it is of 16 bits; the workspace is not counted."""
    a, w = _matrix(args.tensor(0)), args.tensor(2)
    # From the end: a number of bits before the sizes may be as large as m.
    for i in reversed(range(len(args) - 2)):
        m, n, k = (args.integer(i + j) for j in range(3))
        if n is not None and n >= 0 and (m, k) == a.dims:
            # The type of the weights comes before the sizes, the workspace before that.
            reads = [w, *_given(args, 0, 1, 2, i - 2)]
            return _product(a, n, reads, a.dtype if a.dtype and a.dtype.size == FP16.size else None, a.dtype)
    raise Unknown("no_values")


@cost_model("_C::machete_mm", family="gemm", matrix=True, params="A B b_type out_type")
def machete_product(args: Arguments) -> Work:
    """A [m, k] with int32 that hold several weights each along k: [.., n] of them; the type of the result may
    be asked for."""
    a, w = _matrix(args.tensor(0)), _matrix(args.tensor(1))
    return _product(a, w.dims[1], [w, *_given(args, 0, 1)], args.dtype_code(3) or a.dtype, a.dtype)


@cost_model("_C::allspark_w8a16_gemm", family="gemm", matrix=True, params="A weight scales zeros n")
def allspark_product(args: Arguments) -> Work:
    """A [m, k] with reordered bytes; their columns are a value."""
    return _with_columns(args, 0, 1, args.integer(4))


@cost_model(
    "_C::ggml_mul_mat_a8", "_C::ggml_mul_mat_vec_a8", family="gemm", matrix=True, params="W X type row"
)
def ggml_product(args: Arguments) -> Work:
    """X [m, k] with blocks of bytes; their rows are a value."""
    return _with_columns(args, 1, 0, args.integer(3))


def _with_columns(args: Arguments, x: int, w: int, n: int | None) -> Work:
    a, weight = _matrix(args.tensor(x)), args.tensor(w)
    if n is None or n < 0:
        raise Unknown("no_values")
    return _product(a, n, [weight, *_given(args, x, w)], a.dtype, a.dtype)


@cost_model("bitsandbytes::int8_linear_matmul", family="gemm", matrix=True, params="A B result")
def int8_linear(args: Arguments) -> Work:
    """int8 A [.., k] with B [n, k] into int32, in integer operations."""
    a, b = args.tensor(0), _matrix(args.tensor(1))
    if not a.dims or a.dims[-1] != b.dims[1]:
        raise Unknown("bad_shapes")
    return _product(a, b.dims[0], [b], INT32 if a.dtype else None, a.dtype)


@cost_model(
    "bitsandbytes::int8_scaled_mm", family="gemm", matrix=True, params="A B row_stats col_stats bias dtype"
)
def int8_scaled(args: Arguments) -> Work:
    """int8_linear_matmul and the scaling of its result (fp16 unless asked for other).  A composite."""
    a, b = args.tensor(0), _matrix(args.tensor(1))
    if not a.dims or a.dims[-1] != b.dims[1]:
        raise Unknown("bad_shapes")
    out = args.dtype_code(5) or (FP16 if a.dtype else None)
    work = _product(a, b.dims[0], [b, *_given(args, 0, 1)], out, a.dtype)
    return Work(work.flops, work.reads, work.writes, work.dtype, COMPOSITE)


@cost_model("bitsandbytes::gemv_4bit", family="gemm", matrix=True, params="A B shapeB absmax code blocksize")
def gemv_4bit(args: Arguments) -> Work:
    """A [.., k] with packed weights, whose shape [n, k] is a value.  Calculates in A's type."""
    a, shape = args.tensor(0), args.sizes(2)
    if len(shape) != 2 or not a.dims or a.dims[-1] != shape[1]:
        raise Unknown("bad_shapes")
    return _product(a, shape[0], _given(args, 0), a.dtype, a.dtype)
