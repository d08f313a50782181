"""Sums, extremes and their kin, and scans.  FLOPs are a convention: 1 per input element, 2 for norms,
4 for variances and log-sum-exp.  The FLOPs of an expanded input count every element, its bytes do not.

Not counted: partial results that a split reduction writes and reads again; the division of a mean.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.elementwise import pointwise
from rooflight.cost.gemm import broadcast
from rooflight.cost.promotion import BOOL, INT64, accumulated, as_float, real_part
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import DType


def reduced(x: Tensor, dims: tuple[int, ...] | None) -> int:
    """Elements that are left when ``dims`` are reduced (None or empty: all of them)."""
    rank = len(x.dims)
    if not dims:
        return 1
    if rank == 0:
        return 1
    gone = {d % rank for d in dims if -rank <= d < rank}
    if len(gone) != len(dims):
        raise Unknown("bad_shapes")
    return product([n for i, n in enumerate(x.dims) if i not in gone])


def _reduce(
    x: Tensor, left: int | None, out: DType | None, per_element: int = 1, *more: DType | None
) -> Work:
    """``left`` elements of type ``out`` and of each of ``more`` are written."""
    writes = None if left is None else pieces([Piece(left, dtype) for dtype in (out, *more)])
    return Work(per_element * x.numel, pieces(x), writes, x.dtype)


@cost_model(
    "aten::sum", "aten::nansum", "aten::prod", "aten::mean", "aten::nanmean", family="reduction", at_most=5
)
def total(args: Arguments) -> Work:
    """1 FLOP per input element.  The overload without dims reduces all; a dtype argument gives the type
    of the result, else sums of integers and booleans are int64."""
    x = args.tensor(0)
    if len(args) <= 2:
        return _reduce(x, 1, _total_type(args, 1, x))
    return _reduce(x, _left(args, 1, x), _total_type(args, 3, x))


@cost_model("aten::amax", "aten::amin", "aten::logsumexp", family="reduction", at_most=4)
def extreme(args: Arguments) -> Work:
    """amax, amin: 1 FLOP per element; logsumexp 4 (maximum, subtract, exponential, sum)."""
    x = args.tensor(0)
    is_lse = args.name.endswith("logsumexp")
    out = as_float(x.dtype) if is_lse else x.dtype
    return _reduce(x, _left(args, 1, x), out, 4 if is_lse else 1)


@cost_model(
    "aten::max", "aten::min", "aten::median", "aten::mode", "aten::nanmedian", family="reduction", at_most=5
)
def extreme_with_index(args: Arguments) -> Work:
    """1 FLOP per element.  Along a dim it writes the values and their int64 indices; of two tensors it
    is elementwise."""
    x, other = args.tensor(0), args.maybe(1)
    if other is not None:
        return pointwise([x, other])
    if len(args) == 1:
        return _reduce(x, 1, x.dtype)
    return _reduce(x, _left(args, 1, x), x.dtype, 1, INT64)


@cost_model("aten::aminmax", "aten::_aminmax", family="reduction")
def aminmax(args: Arguments) -> Work:
    """2 FLOPs per element: both ends are looked for and written."""
    x = args.tensor(0)
    return _reduce(x, _left(args, 1, x), x.dtype, 2, x.dtype)


@cost_model("aten::argmax", "aten::argmin", family="reduction", at_most=4)
def argmax(args: Arguments) -> Work:
    """1 FLOP per element; writes int64 indices alone."""
    x = args.tensor(0)
    return _reduce(x, _left(args, 1, x), INT64)


@cost_model("aten::any", "aten::all", family="reduction", at_most=4)
def any_or_all(args: Arguments) -> Work:
    """1 FLOP per element; writes booleans."""
    x = args.tensor(0)
    return _reduce(x, _left(args, 1, x), BOOL)


@cost_model("aten::count_nonzero", family="reduction")
def count_nonzero(args: Arguments) -> Work:
    """1 FLOP per element; writes int64 counts."""
    x = args.tensor(0)
    return _reduce(x, _left(args, 1, x), INT64)


@cost_model("aten::var", "aten::std", family="reduction")
def variance(args: Arguments) -> Work:
    """4 FLOPs per element.  Without dims (all, or a flag in their place) the whole tensor is reduced; that of
    complex numbers is real."""
    x = args.tensor(0)
    return _reduce(x, _moments(args, x), _real(x), 4)


@cost_model("aten::var_mean", "aten::std_mean", family="reduction")
def variance_and_mean(args: Arguments) -> Work:
    """As var; writes the mean too."""
    x = args.tensor(0)
    return _reduce(x, _moments(args, x), _real(x), 4, x.dtype)


@cost_model("aten::linalg_vector_norm", "aten::norm", family="reduction")
def norm(args: Arguments) -> Work:
    """2 FLOPs per element (square and add); the norm of complex numbers is real."""
    x = args.tensor(0)
    out = (args.dtype_code(4) or _real(x)) if x.dtype else None
    return _reduce(x, _left(args, 2, x), out, 2)


@cost_model(
    "aten::cumsum",
    "aten::cumprod",
    "aten::logcumsumexp",
    "aten::_cumsum",
    "aten::_cumprod",
    "aten::cumsum_",
    family="reduction",
)
def scan(args: Arguments) -> Work:
    """1 FLOP per element; the result is as large as the input."""
    x = args.tensor(0)
    asked = args.dtype_code(2)
    out = None if x.dtype is None else asked or accumulated(x.dtype)
    return Work(x.numel, pieces(x), pieces(Piece(x.numel, out)), x.dtype)


@cost_model("aten::cummax", "aten::cummin", family="reduction")
def scan_with_index(args: Arguments) -> Work:
    """1 FLOP per element; writes values and int64 indices."""
    x = args.tensor(0)
    return Work(x.numel, pieces(x), pieces(x.like(), Piece(x.numel, INT64)), x.dtype)


@cost_model("aten::trace", family="reduction")
def trace(args: Arguments) -> Work:
    """1 FLOP per element of the diagonal, which alone is read."""
    x = args.tensor(0)
    if len(x.dims) != 2:
        raise Unknown("bad_shapes")
    n = min(x.dims)
    return Work(n, pieces(Piece(n, x.dtype)), pieces(Piece(1, accumulated(x.dtype))), x.dtype)


@cost_model("aten::renorm", "aten::renorm_", family="reduction")
def renorm(args: Arguments) -> Work:
    """Slices scaled down to a norm: reads x, writes as much; its FLOPs have no convention."""
    x = args.tensor(0)
    return Work(None, pieces(x), pieces(x.like()), x.dtype, "no_convention")


@cost_model("aten::_cdist_forward", "aten::_euclidean_dist", family="reduction")
def distances(args: Arguments) -> Work:
    """[.., p, m] and [.., r, m]: reads both, writes the p x r distances; their FLOPs have no convention."""
    a, b = args.tensor(0), args.tensor(1)
    if min(len(a.dims), len(b.dims)) < 2 or a.dims[-1] != b.dims[-1]:
        raise Unknown("bad_shapes")
    batch = broadcast(a.dims[:-2], b.dims[:-2])
    out = Piece(product([*batch, a.dims[-2], b.dims[-2]]), a.dtype)
    return Work(None, pieces(a, b), pieces(out), a.dtype, "no_convention")


def _real(x: Tensor) -> DType | None:
    return None if x.dtype is None else real_part(x.dtype)


def _left(args: Arguments, i: int, x: Tensor) -> int | None:
    """Elements of the result; None when dims were given (argument ``i``) and were not recorded."""
    if len(args) > i and not args.has_values:
        return None
    return reduced(x, args.ints(i))


def _moments(args: Arguments, x: Tensor) -> int | None:
    return 1 if args.flag(1) is not None else _left(args, 1, x)


def _total_type(args: Arguments, i: int, x: Tensor) -> DType | None:
    if x.dtype is None:
        return None
    asked = args.dtype_code(i)
    if asked is not None:
        return asked
    return x.dtype if "mean" in args.name else accumulated(x.dtype)
