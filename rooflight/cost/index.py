"""Gathers, scatters and lookups.  Bytes are bounds: an element that is asked for twice may be read once.

Not counted: the arithmetic of places; parts of a memory line that are moved and not asked for; atomic
updates that meet.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces
from rooflight.trace.timeline import EXECUTION_TRACE


def _row(x: Tensor, dim: int | None) -> tuple[int, int]:
    """Entries along ``dim``, and elements of one of them."""
    dims = x.dims or (1,)
    rank = len(dims)
    if dim is None and rank == 1:
        dim = 0  # not recorded, and there is no other
    if dim is None or not -rank <= dim < rank:
        raise Unknown("no_shapes")
    return dims[dim], product([s for i, s in enumerate(dims) if i != dim % rank])


@cost_model("aten::embedding", family="embedding")
def embedding(args: Arguments) -> Work:
    """0 FLOPs.  Reads the indices and at most min(indices, rows) rows, never the whole table."""
    table, idx = args.tensor(0), args.tensor(1)
    rows, width = _row(table, 0)
    read = Piece(product([min(idx.numel, rows), width]), table.dtype)
    return Work(0, pieces(idx, read), pieces(Piece(product([idx.numel, width]), table.dtype)), table.dtype)


@cost_model(
    "aten::_embedding_bag", "aten::embedding_bag", "aten::_embedding_bag_forward_only", family="embedding"
)
def embedding_bag(args: Arguments) -> Work:
    """1 addition per gathered element.  Reads indices, offsets and the touched rows, writes one row per
    bag; what it notes for the backward pass is not counted."""
    table, idx, offsets = args.tensor(0), args.tensor(1), args.tensor(2)
    rows, width = _row(table, 0)
    bags = max(0, offsets.numel - (args.flag(7) is True))
    gathered = product([idx.numel, width])
    touched = Piece(product([min(idx.numel, rows), width]), table.dtype)
    out = Piece(product([bags, width]), table.dtype)
    return Work(gathered, pieces(idx, offsets, touched, args.maybe(6)), pieces(out), table.dtype)


@cost_model("aten::embedding_dense_backward", family="embedding_bwd")
def embedding_dense_backward(args: Arguments) -> Work:
    """1 addition per element of the gradient; reads it and the indices, writes the whole table."""
    grad, idx = args.tensor(0), args.tensor(1)
    rows = args.integer(2)
    out = None
    if rows is not None and rows >= 0 and grad.dims:
        out = pieces(Piece(product([rows, grad.dims[-1]]), grad.dtype))
    return Work(grad.numel, pieces(grad, idx), out, grad.dtype)


@cost_model("aten::index_select", family="index")
def index_select(args: Arguments) -> Work:
    """0 FLOPs.  Reads the indices and the chosen entries."""
    x, idx = args.tensor(0), args.tensor(2)
    n, width = _row(x, args.integer(1))
    read = Piece(product([min(idx.numel, n), width]), x.dtype)
    return Work(0, pieces(idx, read), pieces(Piece(product([idx.numel, width]), x.dtype)), x.dtype)


@cost_model("aten::gather", "aten::take_along_dim", family="index")
def gather(args: Arguments) -> Work:
    """0 FLOPs.  Reads the indices and at most one element for each, writes as many."""
    x = args.tensor(0)
    return _gathered(x, args.tensor(1 if "along" in args.name else 2))


@cost_model("aten::take", family="index")
def take(args: Arguments) -> Work:
    """As gather, over the flattened tensor."""
    return _gathered(args.tensor(0), args.tensor(1))


def _gathered(x: Tensor, idx: Tensor) -> Work:
    read = Piece(min(idx.numel, x.unique), x.dtype)
    return Work(0, pieces(idx, read), pieces(Piece(idx.numel, x.dtype)), x.dtype)


@cost_model("aten::index", "aten::_index", "aten::_unsafe_index", family="index")
def index(args: Arguments) -> Work:
    """0 FLOPs.  A list of optional tensors is recorded by an execution trace only, and so is the size of the
    result: with one, reads the indices and at most one element for each of the result; else unknown."""
    x, made = args.tensor(0), args.results()
    if len(made) != 1:
        return Work(0, None, None, x.dtype, "data_dependent")
    return _chosen(x, args.tensors(1), made[0])


@cost_model("aten::masked_select", family="index")
def masked_select(args: Arguments) -> Work:
    """0 FLOPs.  How much is selected depends on the values: bytes are unknown without an execution trace."""
    x, made = args.tensor(0), args.results()
    if len(made) != 1:
        return Work(0, None, None, x.dtype, "data_dependent")
    return _chosen(x, [args.tensor(1)], made[0])


def _chosen(x: Tensor, chooser: list[Tensor], made: Tensor) -> Work:
    read = Piece(min(made.numel, x.unique), x.dtype)
    return Work(0, pieces(chooser, read), pieces(made.like(x.dtype)), x.dtype, EXECUTION_TRACE)


@cost_model("aten::index_put_", "aten::_index_put_impl_", family="index")
def index_put_(args: Arguments) -> Work:
    """Reads the values and writes as much of the tensor; accumulating reads that much too and is 1
    FLOP per element.  The indices are not recorded and not counted; nor is a lone value's reach."""
    x, values = args.tensor(0), args.tensor(2)
    if values.numel == 1 and x.numel > 1:
        return Work(None if args.flag(3) else 0, None, None, x.dtype, "data_dependent")
    return _scattered(x, values.numel, (values.traffic,), args.flag(3) is True)


@cost_model("aten::index_put", "aten::_unsafe_index_put", family="index")
def index_put(args: Arguments) -> Work:
    """As index_put_ into a copy: the tensor is read and written whole, and the values are read."""
    x, values = args.tensor(0), args.tensor(2)
    adds = None if values.numel == 1 and x.numel > 1 else values.numel
    return Work(adds if args.flag(3) else 0, pieces(x, values), pieces(x.like()), x.dtype)


@cost_model("aten::put_", family="index")
def put_(args: Arguments) -> Work:
    """As index_put_, with indices into the flattened tensor, which are recorded and read."""
    idx, values = args.tensor(1), args.tensor(2)
    return _scattered(args.tensor(0), values.numel, pieces(idx, values), args.flag(3) is True)


@cost_model("aten::masked_scatter_", "aten::masked_scatter", family="index")
def masked_scatter(args: Arguments) -> Work:
    """0 FLOPs.  How much is written depends on the mask's values: bytes are unknown."""
    x = args.tensor(0)
    return Work(0, None, None, x.dtype, "data_dependent")


@cost_model(
    "aten::slice_scatter",
    "aten::select_scatter",
    "aten::diagonal_scatter",
    "aten::as_strided_scatter",
    family="index",
)
def slice_scatter(args: Arguments) -> Work:
    """A copy with a part of it replaced: reads the tensor and the part, writes a tensor.  0 FLOPs."""
    x, part = args.tensor(0), args.tensor(1)
    return Work(0, pieces(x, part), pieces(x.like()), x.dtype)


@cost_model("aten::scatter_add_", "aten::scatter_reduce_", family="index")
def scatter_add_(args: Arguments) -> Work:
    """1 FLOP per touched element; reads indices, source and what is touched, writes that back."""
    idx, source = args.tensor(2), args.tensor(3)
    touched = Piece(idx.numel, source.dtype)
    return _scattered(args.tensor(0), idx.numel, pieces(idx, touched), True)


@cost_model("aten::scatter_", family="index")
def scatter_(args: Arguments) -> Work:
    """0 FLOPs; reads indices and source (nothing for a number), writes what is touched."""
    idx, source = args.tensor(2), args.maybe(3)
    read = None if source is None else Piece(min(idx.numel, source.numel), source.dtype)
    return _scattered(args.tensor(0), idx.numel, pieces(idx, read), False)


@cost_model("aten::scatter_add", "aten::scatter_reduce", family="index")
def scatter_add(args: Arguments) -> Work:
    """As scatter_add_ into a copy: the tensor is read and written whole."""
    x, idx, source = args.tensor(0), args.tensor(2), args.tensor(3)
    return Work(idx.numel, pieces(x, idx, Piece(idx.numel, source.dtype)), pieces(x.like()), x.dtype)


@cost_model("aten::scatter", family="index")
def scatter(args: Arguments) -> Work:
    """As scatter_ into a copy: the tensor is read and written whole."""
    x, idx, source = args.tensor(0), args.tensor(2), args.maybe(3)
    read = None if source is None else Piece(min(idx.numel, source.numel), source.dtype)
    return Work(0, pieces(x, idx, read), pieces(x.like()), x.dtype)


@cost_model("aten::index_add_", "aten::index_reduce_", family="index")
def index_add_(args: Arguments) -> Work:
    """1 FLOP per element of the source; reads it, the indices and what is touched, writes that back."""
    idx, source = args.tensor(2), args.tensor(3)
    return _scattered(args.tensor(0), source.numel, pieces(idx, source), True)


@cost_model("aten::index_copy_", family="index")
def index_copy_(args: Arguments) -> Work:
    """0 FLOPs; reads indices and source, writes what is touched."""
    idx, source = args.tensor(2), args.tensor(3)
    return _scattered(args.tensor(0), source.numel, pieces(idx, source), False)


@cost_model("aten::index_add", "aten::index_copy", "aten::index_reduce", family="index")
def index_add(args: Arguments) -> Work:
    """As the in-place op into a copy: the tensor is read and written whole."""
    x, idx, source = args.tensor(0), args.tensor(2), args.tensor(3)
    flops = 0 if "copy" in args.name else source.numel
    return Work(flops, pieces(x, idx, source), pieces(x.like()), x.dtype)


@cost_model("aten::index_fill_", family="index")
def index_fill_(args: Arguments) -> Work:
    """0 FLOPs; reads the indices, writes the chosen entries."""
    x, idx = args.tensor(0), args.tensor(2)
    _, width = _row(x, args.integer(1))
    return _scattered(x, product([idx.numel, width]), pieces(idx), False)


@cost_model("aten::index_fill", family="index")
def index_fill(args: Arguments) -> Work:
    """As index_fill_ into a copy: the tensor is read and written whole."""
    x, idx = args.tensor(0), args.tensor(2)
    return Work(0, pieces(x, idx), pieces(x.like()), x.dtype)


@cost_model("aten::_embedding_bag_dense_backward", family="embedding_bwd")
def embedding_bag_dense_backward(args: Arguments) -> Work:
    """(dy, indices, bag of each, ..): 1 addition per gathered element; reads dy, indices and bags, writes the
    whole table (its rows are the sixth argument)."""
    grad, idx, bags = args.tensor(0), args.tensor(1), args.tensor(2)
    rows = args.integer(5)
    if len(grad.dims) != 2:
        raise Unknown("bad_shapes")
    width = grad.dims[1]
    out = None
    if rows is not None and rows >= 0:
        out = pieces(Piece(product([rows, width]), grad.dtype))
    return Work(product([idx.numel, width]), pieces(grad, idx, bags), out, grad.dtype)


def _scattered(x: Tensor, touched: int, reads: tuple[Piece, ...], accumulate: bool) -> Work:
    out = Piece(touched, x.dtype)
    return Work(touched if accumulate else 0, pieces(reads, out if accumulate else None), (out,), x.dtype)


@cost_model(
    "vllm::unified_kv_cache_update",
    "sglang::store_cache",
    "_C_cache_ops::reshape_and_cache",
    "_C_cache_ops::reshape_and_cache_flash",
    family="kv_cache",
)
def store_cache(args: Arguments) -> Work:
    """New keys and values into a cache: reads both and the slots, writes as much.  The dims of the
    cache are those of all of it and are not counted."""
    k, v = args.tensor(0), args.tensor(1)
    slots = args.maybe(4)
    cache = args.maybe(2) or k
    writes = [Piece(t.unique, cache.dtype) for t in (k, v)]
    return Work(0, pieces(k, v, slots), pieces(writes), k.dtype)


@cost_model("_C_cache_ops::concat_and_cache_mla", family="kv_cache", params="kv_c k_pe kv_cache slot_mapping")
def store_latent(args: Arguments) -> Work:
    """As reshape_and_cache, of latent keys and values: each token's two parts into one row of the cache."""
    c, pe, cache = args.tensor(0), args.tensor(1), args.tensor(2)
    written = Piece(c.unique + pe.unique, cache.dtype)
    return Work(0, pieces(c, pe, args.maybe(3)), pieces(written), c.dtype)
