"""Rotary position embeddings: pairs of elements turned by an angle that their position gives.

FLOPs are a convention: 3 per turned element (of a pair, 4 products and 2 sums).

Not counted: the arithmetic of places; of a table of angles no more is read than there are positions.

Source: a convention of our own; the order of arguments as each engine registers its ops: vllm-project/vllm
csrc/torch_bindings.cpp @00256d59, sgl-project/sglang sgl-kernel/csrc/common_extension.cc @0063ef14 (read
2026-12-02).
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces

_PER_ELEMENT = 3


def _angles(table: Tensor, positions: Tensor) -> Piece:
    """The rows of the table that so many positions can touch."""
    if len(table.dims) != 2:
        raise Unknown("bad_shapes")
    return Piece(product([min(positions.numel, table.dims[0]), table.dims[1]]), table.dtype)


@cost_model(
    "_C::rotary_embedding",
    "sgl_kernel::rotary_embedding",
    family="rope",
    params="positions q k head_size cos_sin_cache is_neox",
)
def rotary_embedding(args: Arguments) -> Work:
    """Turns q and k in place: of each head as many elements as the table is wide, which are read and written;
    the rest of a head is not touched."""
    positions, q, k, table = args.tensor(0), args.tensor(1), args.maybe(2), args.tensor(4)
    head = args.integer(3)
    angles = _angles(table, positions)
    if not head or head < table.dims[1] or q.numel % head or (k is not None and k.numel % head):
        raise Unknown("bad_shapes")
    turned = [Piece(product([t.numel // head, table.dims[1]]), t.dtype) for t in (q, k) if t is not None]
    flops = _PER_ELEMENT * sum(t.elements for t in turned)
    return Work(flops, pieces(positions, angles, turned), pieces(turned), q.dtype)


@cost_model(
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
    "flashinfer::apply_rope_pos_ids_cos_sin_cache",
    family="rope",
    params="q k q_rope k_rope cos_sin_cache pos_ids interleave enable_pdl cuda_stream v",
)
def apply_rope(args: Arguments) -> Work:
    """As rotary_embedding, [tokens, heads, head size] into results of their own, which take over what is not
    turned.  When it also fills a cache, what it writes is not known."""
    if args.maybe(9) is not None:
        raise Unknown("roles_unknown")
    q, k, table, positions = (args.tensor(i) for i in (0, 1, 4, 5))
    if len(q.dims) != 3 or len(k.dims) != 3:
        raise Unknown("bad_shapes")
    angles = _angles(table, positions)
    if table.dims[1] > min(q.dims[2], k.dims[2]):
        raise Unknown("bad_shapes")
    turned = sum(product([*t.dims[:2], table.dims[1]]) for t in (q, k))
    return Work(_PER_ELEMENT * turned, pieces(q, k, positions, angles), pieces(q.like(), k.like()), q.dtype)
