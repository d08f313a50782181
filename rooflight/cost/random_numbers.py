"""Random numbers and dropout.  What a generator computes per number has no convention: FLOPs unknown.

Not counted: the generator's arithmetic and its state.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import BOOL, FP32, INT64, UINT8
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Unknown, product
from rooflight.cost.work import Work, pieces


@cost_model(
    "aten::normal_",
    "aten::uniform_",
    "aten::random_",
    "aten::exponential_",
    "aten::log_normal_",
    "aten::cauchy_",
    "aten::geometric_",
    "aten::bernoulli_",
    family="rng",
)
def fill_random(args: Arguments) -> Work:
    """Fills a tensor; it is written and not read.  A tensor of probabilities is read."""
    x = args.tensor(0)
    probabilities = args.maybe(1) if args.name.endswith("bernoulli_") else None
    return Work(None, pieces(probabilities), pieces(x.like()), x.dtype, "no_convention")


@cost_model("aten::bernoulli", "aten::rand_like", "aten::randn_like", "aten::randint_like", family="rng")
def random_like(args: Arguments) -> Work:
    """A random tensor as large as x; bernoulli reads x, the others do not."""
    x = args.tensor(0)
    reads = pieces(x) if args.name.endswith("bernoulli") else ()
    return Work(None, reads, pieces(x.like()), x.dtype, "no_convention")


@cost_model("aten::rand", "aten::randn", family="rng")
def random_new(args: Arguments) -> Work:
    """A new random tensor of the size asked for.  A composite of empty and a fill."""
    # The overloads differ in a generator between size and type.
    dtype = args.dtype_code(1) or FP32
    return Work(None, (), pieces(Piece(product(args.sizes(0)), dtype)), dtype, "composite")


@cost_model("aten::randint", family="rng")
def random_integers(args: Arguments) -> Work:
    """A new tensor of random whole numbers, int64 unless another type is asked for.  A composite."""
    # (high, size, type, ..) or (low, high, size, type, ..)
    at = 1 if args.kind(1) == "ScalarList" else 2
    dtype = args.dtype_code(at + 1) or INT64
    return Work(None, (), pieces(Piece(product(args.sizes(at)), dtype)), dtype, "composite")


@cost_model("aten::randperm", family="rng")
def randperm(args: Arguments) -> Work:
    """A random order of n int64 numbers."""
    n = args.integer(0)
    if n is None or n < 0:
        raise Unknown("no_values")
    return Work(None, (), pieces(Piece(n, INT64)), INT64, "composite")


@cost_model("aten::multinomial", family="rng")
def multinomial(args: Arguments) -> Work:
    """Draws from each row of probabilities: reads them, writes int64 positions, as many as asked for."""
    x, n = args.tensor(0), args.integer(1)
    if n is None or n < 0 or len(x.dims) not in (1, 2):
        raise Unknown("no_values")
    out = Piece(product([*x.dims[:-1], n]), INT64)
    return Work(None, pieces(x), pieces(out), x.dtype, "no_convention")


@cost_model("aten::poisson", "aten::_standard_gamma", family="rng")
def drawn_from(args: Arguments) -> Work:
    """A number for each rate: reads x, writes as much."""
    x = args.tensor(0)
    return Work(None, pieces(x), pieces(x.like()), x.dtype, "no_convention")


@cost_model("aten::native_dropout", "aten::_fused_dropout", family="dropout")
def dropout(args: Arguments) -> Work:
    """2 FLOPs per element (compare, scale).  Reads x, writes y and a mask of one byte per element."""
    x = args.tensor(0)
    mask = Piece(x.numel, UINT8 if args.name.endswith("_fused_dropout") else BOOL)
    return Work(2 * x.numel, pieces(x), pieces(x.like(), mask), x.dtype)


@cost_model("aten::native_dropout_backward", "aten::_masked_scale", family="dropout")
def dropout_backward(args: Arguments) -> Work:
    """2 FLOPs per element; reads the gradient and the mask."""
    grad, mask = args.tensor(0), args.tensor(1)
    return Work(2 * grad.numel, pieces(grad, mask), pieces(grad.like()), grad.dtype)


@cost_model("aten::dropout", "aten::dropout_", "aten::feature_dropout", family="dropout")
def dropout_composite(args: Arguments) -> Work:
    """Nothing outside training; in training a composite whose children are costed."""
    x = args.tensor(0)
    if args.flag(2) is False:
        return Work(0, (), (), x.dtype)
    return Work(2 * x.numel, None, None, x.dtype, "composite")
