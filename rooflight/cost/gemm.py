"""Matrix products.  A multiply-add is 2 FLOPs.

Not counted: what is done to the result afterwards (a bias, beta * C, scales, an activation), and what a
library moves besides (partial sums of a split inner dim, repacked operands).

Source: mm, addmm, bmm and baddbmm count as in torch's own FlopCounterMode (pytorch/pytorch
torch/utils/flop_counter.py @0140b62d, read 2026-12-02); the other products follow from them. Bytes are our
own convention.
"""

from __future__ import annotations

from itertools import zip_longest

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import BF16, INT32, promote
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Moved, Work, pieces
from rooflight.dtypes import DType


def multiply_adds(b: int, m: int, n: int, k: int, dtype: DType | None) -> int:
    """FLOPs of b products [m, k] x [k, n]; a complex multiply-add is 4 real ones."""
    return (
        2 * product([b or 1, m or 1, n or 1, k or 1]) * (b > 0) * (m > 0) * (n > 0) * (k > 0) * _parts(dtype)
    )


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape; Unknown (``bad_shapes``) when there is none."""
    dims = []
    for sizes in zip_longest(*(reversed(s) for s in shapes), fillvalue=1):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise Unknown("bad_shapes")
        dims.append(wide.pop() if wide else 1)
    return tuple(reversed(dims))


@cost_model("aten::mm", "aten::bmm", family="gemm", matrix=True, at_most=4)
def mm(args: Arguments) -> Work:
    """[.., m, k] x [.., k, n]: 2*B*m*n*k FLOPs (times 4 for complex numbers).  Each operand is read
    once, an expanded one as far as it is different, and the result is written once."""
    return _batched(args.tensor(0), args.tensor(1))


@cost_model(
    "aten::addmm",
    "aten::addmm_",
    "aten::baddbmm",
    "aten::baddbmm_",
    "aten::_addmm_activation",
    family="gemm",
    matrix=True,
    at_most=7,
    params="C A B beta alpha",
)
def addmm(args: Arguments) -> Work:
    """beta*C + alpha*(A x B): as the product; C is read unless beta is 0.  The addition is no FLOP."""
    return _batched(args.tensor(1), args.tensor(2), _addend(args))


@cost_model(
    "aten::addbmm",
    "aten::addbmm_",
    family="gemm",
    matrix=True,
    at_most=6,
    params="C A B beta alpha",
)
def addbmm(args: Arguments) -> Work:
    """As baddbmm, but summed over the batch: one m x n result."""
    a, b = args.tensor(1), args.tensor(2)
    batch, m, n, k = _sizes(a, b)
    flops = multiply_adds(product(batch), m, n, k, a.dtype)
    return Work(flops, pieces(a, b, _addend(args)), pieces(_out((m, n), a, b)), _common(a, b))


@cost_model(
    "aten::linear",
    "aten::mkldnn_linear",
    "aten::mkl_linear",
    "mkl::_mkl_linear",
    "mkldnn::_linear_pointwise",
    "aten::_mkldnn_linear",
    "vllm::rocm_unquantized_gemm",
    "vllm::rocm_unquantized_gemm_impl",
    "vllm::default_unquantized_gemm",
    "aiter::gemm_a16w16",
    family="gemm",
    matrix=True,
    at_most=4,
    params="x weight bias",
)
def linear(args: Arguments) -> Work:
    """x [.., k] with a weight [n, k] (or [k]): 2*rows*n*k FLOPs.  Reads x, weight and bias."""
    x, w = args.tensor(0), args.tensor(1)
    if not x.dims or len(w.dims) not in (1, 2) or w.dims[-1] != x.dims[-1]:
        raise Unknown("bad_shapes")
    rows, n = x.dims[:-1], w.dims[:-1]
    flops = multiply_adds(product(rows), product(n), 1, x.dims[-1], x.dtype)
    bias = args.maybe(2)
    return Work(flops, pieces(x, w, bias), pieces(_out(rows + n, x, w)), _common(x, w))


@cost_model("aten::matmul", "aten::__matmul__", family="gemm", matrix=True, at_most=3)
def matmul(args: Arguments) -> Work:
    """torch's matmul: batch dims are broadcast, a vector on the left is a row, on the right a column.
    2*numel(out)*k FLOPs; each operand is read once although the product may expand it."""
    a, b = args.tensor(0), args.tensor(1)
    if not a.dims or not b.dims:
        raise Unknown("bad_shapes")
    left = a.dims if len(a.dims) > 1 else (1, *a.dims)
    right = b.dims if len(b.dims) > 1 else (*b.dims, 1)
    if left[-1] != right[-2]:
        raise Unknown("bad_shapes")
    batch = broadcast(left[:-2], right[:-2])
    m, n, k = left[-2], right[-1], left[-1]
    out = batch + ((m,) if len(a.dims) > 1 else ()) + ((n,) if len(b.dims) > 1 else ())
    flops = multiply_adds(product(batch), m, n, k, a.dtype)
    return Work(flops, pieces(a, b), pieces(_out(out, a, b)), _common(a, b))


@cost_model("aten::mv", "aten::dot", "aten::vdot", family="gemm", matrix=True, at_most=3)
def mv(args: Arguments) -> Work:
    """Matrix or vector times vector: 2*m*k FLOPs."""
    return _vector(args.tensor(0), args.tensor(1))


@cost_model(
    "aten::addmv",
    "aten::addmv_",
    family="gemm",
    matrix=True,
    at_most=6,
    params="y A x beta alpha",
)
def addmv(args: Arguments) -> Work:
    """beta*y + alpha*(A x): as mv; y is read unless beta is 0."""
    return _vector(args.tensor(1), args.tensor(2), _addend(args))


@cost_model("aten::inner", family="gemm", matrix=True, at_most=3)
def inner(args: Arguments) -> Work:
    """The last dims of both are summed over: 2 FLOPs per element of the result and k.  A composite."""
    a, b = args.tensor(0), args.tensor(1)
    if not a.dims or not b.dims or a.dims[-1] != b.dims[-1]:
        raise Unknown("bad_shapes")
    return _contracted(a, b, a.dims[:-1] + b.dims[:-1], a.dims[-1])


@cost_model(
    "aten::tensordot",
    family="gemm",
    matrix=True,
    at_most=5,
    params="A B dims_self dims_other",
)
def tensordot(args: Arguments) -> Work:
    """The named dims of both are summed over: 2 FLOPs per element of the result and pair.  A composite."""
    a, b = args.tensor(0), args.tensor(1)
    left, right = args.ints(2), args.ints(3)
    if left is None or right is None:
        raise Unknown("no_values")
    sides = [_parted(a, left), _parted(b, right)]
    if sides[0][1] != sides[1][1]:
        raise Unknown("bad_shapes")
    return _contracted(a, b, sides[0][0] + sides[1][0], product(sides[0][1]))


@cost_model("aten::outer", "aten::ger", family="gemm", at_most=3)
def outer(args: Arguments) -> Work:
    """One multiplication per element of the result, not a multiply-add."""
    a, b = args.tensor(0), args.tensor(1)
    out = _out((a.numel, b.numel), a, b)
    return Work(out.elements, pieces(a, b), pieces(out), _common(a, b))


@cost_model(
    "aten::addr",
    "aten::addr_",
    family="gemm",
    at_most=6,
    params="C x y beta alpha",
)
def addr(args: Arguments) -> Work:
    """beta*C + alpha*outer(x, y): one multiplication per element; C is read unless beta is 0."""
    a, b = args.tensor(1), args.tensor(2)
    out = _out((a.numel, b.numel), a, b)
    return Work(out.elements, pieces(a, b, _addend(args)), pieces(out), _common(a, b))


@cost_model("aten::_int_mm", family="gemm", matrix=True, at_most=3)
def int_mm(args: Arguments) -> Work:
    """int8 x int8 into int32: as mm, in integer operations, with 4 bytes per element of the result."""
    a, b = args.tensor(0), args.tensor(1)
    _, m, n, k = _sizes(a, b)
    out = Piece(product([m, n]), INT32 if a.dtype else None)
    return Work(multiply_adds(1, m, n, k, None), pieces(a, b), pieces(out), a.dtype)


@cost_model(
    "aten::_scaled_mm",
    family="gemm",
    matrix=True,
    at_most=9,
    params="A B scale_a scale_b bias scale_result out_dtype use_fast_accum",
)
def scaled_mm(args: Arguments) -> Work:
    """(A x B) of narrow floats with scales: 2*m*n*k FLOPs, where a float4 byte holds two values.
    Reads also the scales and the bias; the result has the type of out_dtype (A's when not given)."""
    a, b = args.tensor(0), args.tensor(1)
    _, m, n, k = _sizes(a, b)
    extras = [args.maybe(i) for i in (2, 3, 4, 5)]
    flops = multiply_adds(1, m, n, k * _packed(a.dtype), None)
    out = Piece(product([m, n]), _out_dtype(args, 6, a))
    return Work(flops, pieces(a, b, extras), pieces(out), a.dtype)


@cost_model("aten::_weight_int8pack_mm", family="gemm", matrix=True, at_most=4, params="x w scales")
def weight_int8pack_mm(args: Arguments) -> Work:
    """x [m, k] with int8 weights [n, k] and a scale for each of n: 2*m*n*k FLOPs; the result has x's type."""
    x, w = args.tensor(0), args.tensor(1)
    if len(x.dims) != 2 or len(w.dims) != 2 or x.dims[1] != w.dims[1]:
        raise Unknown("bad_shapes")
    m, n = x.dims[0], w.dims[0]
    flops = multiply_adds(1, m, n, x.dims[1], None)
    return Work(flops, pieces(x, w, args.maybe(2)), pieces(Piece(product([m, n]), x.dtype)), x.dtype)


@cost_model(
    "aten::_grouped_mm",
    family="gemm",
    matrix=True,
    at_most=6,
    params="A B offs bias out_dtype",
)
def grouped_mm(args: Arguments) -> Work:
    """Products of groups (experts): 2-D x 3-D groups the rows (2*M_total*k*n), 2-D x 2-D the inner
    dim, 3-D x 2-D the columns, 3-D x 3-D is a batch.  The sizes of the groups do not matter."""
    a, b = args.tensor(0), args.tensor(1)
    return _grouped(a, b, args.maybe(2), pieces(args.maybe(3)), _out_dtype(args, 4, a))


@cost_model(
    "aten::_scaled_grouped_mm",
    family="gemm",
    matrix=True,
    at_most=10,
    params="A B scale_a scale_b offs bias scale_result out_dtype use_fast_accum",
)
def scaled_grouped_mm(args: Arguments) -> Work:
    """As _grouped_mm, with scales that are read too; the result is bf16 unless out_dtype says other."""
    a, b = args.tensor(0), args.tensor(1)
    extras = pieces(args.maybe(2), args.maybe(3), args.maybe(5), args.maybe(6))
    out = args.dtype_code(7) or (BF16 if a.dtype and args.text(7) is None else None)
    return _grouped(a, b, args.maybe(4), extras, out)


def _parted(t: Tensor, summed: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dims that stay and those that are summed over."""
    rank = len(t.dims)
    if any(not -rank <= d < rank for d in summed):
        raise Unknown("bad_shapes")
    gone = [d % rank for d in summed]
    return tuple(n for i, n in enumerate(t.dims) if i not in gone), tuple(t.dims[d] for d in gone)


def _contracted(a: Tensor, b: Tensor, out: tuple[int, ...], k: int) -> Work:
    flops = multiply_adds(1, product(out), 1, k, a.dtype)
    return Work(flops, pieces(a, b), pieces(_out(out, a, b)), _common(a, b), "composite")


def _grouped(a: Tensor, b: Tensor, offs: Tensor | None, extras: tuple[Piece, ...], out: DType | None) -> Work:
    ranks = len(a.dims), len(b.dims)
    if ranks == (3, 3):
        (batch,), m, n, k = _sizes(a, b)
        flops, numel = multiply_adds(batch, m, n, k, None), product([batch, m, n])
    elif ranks in ((2, 3), (3, 2), (2, 2)) and a.dims[-1] == b.dims[-2]:
        m, n, k = a.dims[-2], b.dims[-1], a.dims[-1]
        flops = multiply_adds(1, m, n, k, None)
        numel = product([m, n])
        if ranks == (2, 2):
            # Each group is a product of its own over a slice of k.
            numel = product([numel, _groups(offs)])
    else:
        raise Unknown("bad_shapes")
    return Work(flops, pieces(a, b, offs, extras), pieces(Piece(numel, out)), a.dtype)


def _groups(offs: Tensor | None) -> int:
    if offs is None or len(offs.dims) != 1:
        raise Unknown("no_shapes")
    return offs.dims[0]


def _batched(a: Tensor, b: Tensor, addend: Moved = None) -> Work:
    batch, m, n, k = _sizes(a, b)
    flops = multiply_adds(product(batch), m, n, k, a.dtype)
    return Work(flops, pieces(a, b, addend), pieces(_out((*batch, m, n), a, b)), _common(a, b))


def _vector(a: Tensor, x: Tensor, addend: Moved = None) -> Work:
    if len(x.dims) != 1 or not 1 <= len(a.dims) <= 2 or a.dims[-1] != x.dims[0]:
        raise Unknown("bad_shapes")
    flops = multiply_adds(1, product(a.dims[:-1]), 1, x.dims[0], a.dtype)
    return Work(flops, pieces(a, x, addend), pieces(_out(a.dims[:-1], a, x)), _common(a, x))


def _sizes(a: Tensor, b: Tensor) -> tuple[tuple[int, ...], int, int, int]:
    """Batch dims, m, n, k of two matrices or two equal batches of them."""
    rank = len(a.dims)
    if rank not in (2, 3) or len(b.dims) != rank or a.dims[-1] != b.dims[-2] or a.dims[:-2] != b.dims[:-2]:
        raise Unknown("bad_shapes")
    return a.dims[:-2], a.dims[-2], b.dims[-1], a.dims[-1]


def _addend(args: Arguments) -> Tensor | None:
    return None if args.number(3) == 0 else args.maybe(0)


def _out(dims: tuple[int, ...], a: Tensor, b: Tensor) -> Piece:
    return Piece(product(dims), _common(a, b))


def _common(a: Tensor, b: Tensor) -> DType | None:
    if a.dtype is None or b.dtype is None:
        return None
    return promote(a.dtype, b.dtype)


def _out_dtype(args: Arguments, i: int, a: Tensor) -> DType | None:
    if args.text(i) is None and a.dtype is not None and args.has_values:
        return a.dtype
    return args.dtype_code(i)


def _packed(dtype: DType | None) -> int:
    return 2 if dtype is not None and dtype.name == "fp4" else 1


def _parts(dtype: DType | None) -> int:
    return 4 if dtype is not None and dtype.is_complex else 1
