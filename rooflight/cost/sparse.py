"""Rows of embedding tables on their way between ranks, by the ops of FBGEMM: copies in another order.

Not counted: the lists that say which columns go where.

The lookups in split tables and their backward pass have no formula: each index reads a row as wide as its
table, and which index is of which table is in the offsets' values, which are not recorded.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.work import Work, pieces


@cost_model(
    "fbgemm::permute_pooled_embs",
    "fbgemm::permute_pooled_embs_auto_grad",
    "fbgemm::recat_embedding_grad_output_mixed_D_batch",
    family="copy",
    prefixes=("torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction",),
)
def permute_pooled(args: Arguments) -> Work:
    """Reads and writes each element of the first argument once: blocks of its columns change places."""
    x = args.tensor(0)
    return Work(0, pieces(x), pieces(x.like()), x.dtype)
