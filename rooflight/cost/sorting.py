"""Sorting, searching and counting.  The work depends on the values: FLOPs are unknown, sizes are not.

Not counted: the passes in between: input and result are counted once.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import BOOL, INT32, INT64
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Unknown, product
from rooflight.cost.work import Work, pieces

_REASON = "data_dependent"


@cost_model("aten::sort", family="sort_scan")
def sort(args: Arguments) -> Work:
    """Reads x, writes values and int64 indices."""
    x = args.tensor(0)
    return Work(None, pieces(x), pieces(x.like(), Piece(x.numel, INT64)), x.dtype, _REASON)


@cost_model("aten::argsort", family="sort_scan")
def argsort(args: Arguments) -> Work:
    """Reads x, writes int64 indices.  A composite of sort, which writes the values too."""
    x = args.tensor(0)
    return Work(None, pieces(x), pieces(Piece(x.numel, INT64)), x.dtype, "composite")


@cost_model("aten::topk", family="sort_scan")
def topk(args: Arguments) -> Work:
    """Reads x, writes k values and int64 indices per row."""
    x, k = args.tensor(0), args.integer(1)
    dim = args.integer(2)
    dims = x.dims or (1,)
    rank = len(dims)
    dim = -1 if dim is None and len(args) < 3 else dim
    if k is None or dim is None or not -rank <= dim < rank or not 0 <= k <= dims[dim]:
        raise Unknown("no_values")
    left = product([n if i != dim % rank else k for i, n in enumerate(dims)])
    return Work(None, pieces(x), pieces(Piece(left, x.dtype), Piece(left, INT64)), x.dtype, _REASON)


@cost_model("aten::kthvalue", family="sort_scan")
def kthvalue(args: Arguments) -> Work:
    """Reads x, writes one value and index per row."""
    x, dim = args.tensor(0), args.integer(2)
    rank = len(x.dims)
    if dim is None or not -rank <= dim < rank:
        raise Unknown("no_values")
    left = product([n for i, n in enumerate(x.dims) if i != dim % rank])
    return Work(None, pieces(x), pieces(Piece(left, x.dtype), Piece(left, INT64)), x.dtype, _REASON)


@cost_model("aten::bucketize", family="sort_scan")
def bucketize(args: Arguments) -> Work:
    """(x, boundaries): reads both, writes int64 (or int32 when asked for)."""
    x, edges = args.tensor(0), args.tensor(1)
    return Work(None, pieces(x, edges), pieces(_places(args, x.numel)), x.dtype, _REASON)


@cost_model("aten::searchsorted", family="sort_scan")
def searchsorted(args: Arguments) -> Work:
    """(sorted, x): reads both, writes int64 (or int32 when asked for)."""
    edges, x = args.tensor(0), args.maybe(1)
    n = 1 if x is None else x.numel
    return Work(None, pieces(edges, x), pieces(_places(args, n)), edges.dtype, _REASON)


@cost_model("aten::isin", family="sort_scan")
def isin(args: Arguments) -> Work:
    """(x, among): reads both, writes a bool for each element of x."""
    x = args.tensor(0)
    return Work(None, pieces(x, args.maybe(1)), pieces(Piece(x.numel, BOOL)), x.dtype, _REASON)


@cost_model("aten::histc", family="sort_scan")
def histc(args: Arguments) -> Work:
    """Reads x, writes the bins in its type."""
    x, bins = args.tensor(0), args.integer(1)
    if bins is None or bins < 0:
        raise Unknown("no_values")
    return Work(None, pieces(x), pieces(Piece(bins, x.dtype)), x.dtype, _REASON)


@cost_model(
    "aten::nonzero",
    "aten::unique_consecutive",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::bincount",
    "aten::argwhere",
    family="sort_scan",
)
def as_many_as_there_are(args: Arguments) -> Work:
    """The size of the result depends on the values: neither FLOPs nor bytes are known; bytes are with an
    execution trace, which has it."""
    x, made = args.tensor(0), args.results()
    if not made:
        raise Unknown(_REASON)
    return Work(None, pieces(args.all_tensors()), pieces(t.like() for t in made), x.dtype, _REASON)


def _places(args: Arguments, n: int) -> Piece:
    return Piece(n, INT32 if args.flag(2) else INT64)
