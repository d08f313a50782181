"""Losses.  Where no convention for FLOPs is agreed they are unknown; the bytes are not.

Not counted: partial sums of the reduction.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.gemm import broadcast
from rooflight.cost.promotion import result_type
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, product
from rooflight.cost.work import Work, pieces

_NONE = 0  # the code of reduction="none"


def _loss_size(args: Arguments, at: int, n: int) -> int | None:
    """Elements of the loss: all of them without a reduction, else 1; None when not recorded."""
    if not args.has_values:
        return None
    return n if args.integer(at) == _NONE else 1


@cost_model("aten::nll_loss_forward", "aten::nll_loss2d_forward", family="reduction")
def nll_loss(args: Arguments) -> Work:
    """1 FLOP per target.  Reads the targets and one log-probability for each (never the whole matrix),
    writes the loss and the total weight."""
    scores, target, weight = args.tensor(0), args.tensor(1), args.maybe(2)
    n = target.numel
    size = _loss_size(args, 3, n)
    touched = Piece(min(n, scores.unique), scores.dtype)
    weights = None if weight is None else Piece(min(n, weight.numel), weight.dtype)
    writes = None if size is None else pieces(Piece(size, scores.dtype), Piece(1, scores.dtype))
    return Work(n, pieces(touched, target, weights), writes, scores.dtype)


@cost_model("aten::nll_loss_backward", "aten::nll_loss2d_backward", family="reduction")
def nll_loss_backward(args: Arguments) -> Work:
    """1 FLOP per target.  Reads the targets, the gradient and the total weight, writes a dense gradient;
    the log-probabilities are not read."""
    grad, scores, target, weight = args.maybe(0), args.tensor(1), args.tensor(2), args.maybe(3)
    n = target.numel
    # Without types a 0-dim gradient cannot be told from an absent one.
    weights = None if weight is None else Piece(min(n, weight.numel), weight.dtype)
    reads = pieces(grad, target, args.maybe(6), weights)
    return Work(n, reads, pieces(scores.like()), scores.dtype)


@cost_model(
    "aten::mse_loss",
    "aten::l1_loss",
    "aten::smooth_l1_loss",
    "aten::huber_loss",
    "aten::soft_margin_loss",
    family="reduction",
)
def two_operand_loss(args: Arguments) -> Work:
    """Reads prediction and target, writes one number (all of them without a reduction).  FLOPs have no
    convention."""
    return _pointwise_loss(args, args.tensor(0), args.tensor(1), 2)


@cost_model("aten::binary_cross_entropy", family="reduction")
def binary_cross_entropy(args: Arguments) -> Work:
    """As mse_loss; the reduction is the fourth argument."""
    return _pointwise_loss(args, args.tensor(0), args.tensor(1), 3, args.maybe(2))


@cost_model("aten::binary_cross_entropy_with_logits", family="reduction")
def binary_cross_entropy_with_logits(args: Arguments) -> Work:
    """A composite of elementwise ops, whose FLOPs are those of its children."""
    x, target = args.tensor(0), args.tensor(1)
    work = _pointwise_loss(args, x, target, 4, args.maybe(2), args.maybe(3))
    return Work(None, work.reads, work.writes, work.dtype, "composite")


@cost_model(
    "aten::mse_loss_backward",
    "aten::smooth_l1_loss_backward",
    "aten::huber_loss_backward",
    "aten::soft_margin_loss_backward",
    "aten::binary_cross_entropy_backward",
    family="reduction",
)
def loss_backward(args: Arguments) -> Work:
    """Reads the gradient, prediction and target, writes a gradient as large as the prediction."""
    grad, x, target = args.tensor(0), args.tensor(1), args.tensor(2)
    return Work(None, pieces(grad, x, target), pieces(x.like()), x.dtype, "no_convention")


@cost_model(
    "aten::cross_entropy_loss",
    "aten::nll_loss",
    "aten::nll_loss_nd",
    "aten::nll_loss2d",
    "aten::kl_div",
    "aten::poisson_nll_loss",
    "aten::hinge_embedding_loss",
    "aten::cosine_embedding_loss",
    "aten::margin_ranking_loss",
    "aten::triplet_margin_loss",
    "aten::multilabel_margin_loss",
    family="reduction",
)
def composite_loss(args: Arguments) -> Work:
    """Built of elementwise ops, a softmax or nll_loss: its children are costed, it is not."""
    x = args.tensor(0)
    return Work(None, None, None, x.dtype, "composite")


def _pointwise_loss(args: Arguments, x: Tensor, target: Tensor, at: int, *more: Tensor | None) -> Work:
    n = product(broadcast(x.dims, target.dims))
    size = _loss_size(args, at, n)
    dtype = result_type([x, target])
    writes = None if size is None else pieces(Piece(size, dtype))
    return Work(None, pieces(x, target, more), writes, dtype, "no_convention")
