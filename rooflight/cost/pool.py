"""Pooling and resampling.  FLOPs are a convention.

Not counted: the division of an average; the arithmetic of places and weights.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.derivation import named
from rooflight.cost.promotion import INT64
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces

_WALKED = 1 << 20


def touched(size: int, out: int, kernel: int, stride: int, pad: int, dilation: int) -> int:
    """Positions of one dim that at least one window covers: fewer than all when the stride leaves gaps."""
    if dilation == 1 and stride <= kernel:
        first, last = max(0, -pad), min(size, (out - 1) * stride - pad + kernel)
        return max(0, last - first) if out else 0
    if out * kernel > _WALKED:
        return min(size, out * kernel)
    starts = (o * stride - pad for o in range(out))
    return len({p for s in starts for p in range(s, s + kernel * dilation, dilation) if 0 <= p < size})


def pooled(size: int, kernel: int, stride: int, pad: int, dilation: int = 1, ceil: bool = False) -> int:
    """Windows along one dim.  With ``ceil`` a last window may hang over, if it starts inside."""
    span = size + 2 * pad - dilation * (kernel - 1) - 1
    n = (span + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (n - 1) * stride >= size + pad:
        n -= 1
    if n < 0:
        raise Unknown("bad_shapes")
    return n


class Windows:
    """The geometry of a pooling op: kernel, stride (the kernel when not given), padding, dilation."""

    def __init__(self, args: Arguments, x: Tensor, rank: int, ceil_at: int, dilation_at: int | None) -> None:
        if len(x.dims) not in (rank + 1, rank + 2):
            raise Unknown("bad_shapes")
        self.kernel = _per_dim(args, 1, rank, None)
        stride = _per_dim(args, 2, rank, self.kernel)
        pad = _per_dim(args, 3, rank, (0,) * rank)
        dilation = (1,) * rank if dilation_at is None else _per_dim(args, dilation_at, rank, (1,) * rank)
        if min(self.kernel + stride + dilation) < 1 or min(pad) < 0:
            raise Unknown("bad_shapes")
        ceil = args.flag(ceil_at) is True
        sizes = x.dims[-rank:]
        shape = list(zip(sizes, self.kernel, stride, pad, dilation, strict=True))
        planes = product(x.dims[:-rank])
        outs = [named(pooled(*dims, ceil), f"windows[{i}]") for i, dims in enumerate(shape)]
        self.out = product([planes, *outs])
        read = [touched(s, o, k, st, p, d) for (s, k, st, p, d), o in zip(shape, outs, strict=True)]
        self.touched = min(product([planes, *read]), x.unique)

    @property
    def taps(self) -> int:
        return product(self.kernel)


def _per_dim(args: Arguments, i: int, rank: int, default: tuple[int, ...] | None) -> tuple[int, ...]:
    values = args.ints(i) or default
    if values is None:
        raise Unknown("no_values")
    values = values * rank if len(values) == 1 else values
    if len(values) != rank or max(abs(v) for v in values) >= 1 << 31:
        raise Unknown("bad_shapes")
    return values


def _rank(args: Arguments) -> int:
    return next(n for n in (1, 2, 3) if f"{n}d" in args.name)


@cost_model(
    "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices",
    "aten::max_pool1d_with_indices",
    family="pool",
)
def max_pool_with_indices(args: Arguments) -> Work:
    """One comparison per tap of the window.  Reads what the windows cover, once, and writes values and
    int64 indices."""
    x = args.tensor(0)
    w = Windows(args, x, _rank(args), 5, 4)
    writes = pieces(Piece(w.out, x.dtype), Piece(w.out, INT64))
    return Work(product([w.taps, w.out]), pieces(Piece(w.touched, x.dtype)), writes, x.dtype)


@cost_model("aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", family="pool")
def max_pool(args: Arguments) -> Work:
    """As max_pool2d_with_indices, without the indices.  A composite."""
    x = args.tensor(0)
    w = Windows(args, x, _rank(args), 5, 4)
    reads, writes = pieces(Piece(w.touched, x.dtype)), pieces(Piece(w.out, x.dtype))
    return Work(product([w.taps, w.out]), reads, writes, x.dtype, "composite")


@cost_model("aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d", family="pool")
def avg_pool(args: Arguments) -> Work:
    """One addition per tap of the window."""
    x = args.tensor(0)
    w = Windows(args, x, _rank(args), 4, None)
    reads, writes = pieces(Piece(w.touched, x.dtype)), pieces(Piece(w.out, x.dtype))
    return Work(product([w.taps, w.out]), reads, writes, x.dtype)


@cost_model("aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward", family="pool")
def max_pool_backward(args: Arguments) -> Work:
    """1 addition per element of the gradient; reads it and the indices, writes a gradient as large as
    the input."""
    grad, x = args.tensor(0), args.tensor(1)
    indices = Piece(grad.numel, INT64)
    return Work(grad.numel, pieces(grad, indices), pieces(x.like()), x.dtype)


@cost_model("aten::adaptive_max_pool2d_backward", "aten::adaptive_max_pool3d_backward", family="pool")
def adaptive_max_pool_backward(args: Arguments) -> Work:
    """As max_pool2d_with_indices_backward."""
    return max_pool_backward(args)


@cost_model("aten::max_unpool2d", "aten::max_unpool3d", family="pool")
def max_unpool(args: Arguments) -> Work:
    """0 FLOPs: values put where their indices say; reads both, writes the whole result."""
    x, indices, rank = args.tensor(0), args.tensor(1), _rank(args)
    size = args.sizes(2)
    if len(size) != rank or len(x.dims) < rank:
        raise Unknown("bad_shapes")
    out = Piece(product([*x.dims[:-rank], *size]), x.dtype)
    return Work(0, pieces(x, indices), pieces(out), x.dtype)


@cost_model("aten::avg_pool2d_backward", "aten::avg_pool3d_backward", family="pool")
def avg_pool_backward(args: Arguments) -> Work:
    """One addition per tap of each window; reads the gradient, writes one as large as the input."""
    grad, x = args.tensor(0), args.tensor(1)
    taps = product(_per_dim(args, 2, _rank(args), None))
    return Work(product([taps, grad.numel]), pieces(grad), pieces(x.like()), x.dtype)


@cost_model(
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    family="pool",
)
def adaptive_avg_pool(args: Arguments) -> Work:
    """1 FLOP per input element; the size of the result is an argument."""
    x, out = _adaptive(args)
    return Work(x.numel, pieces(x), pieces(Piece(out, x.dtype)), x.dtype)


@cost_model(
    "aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d", family="pool"
)
def adaptive_max_pool(args: Arguments) -> Work:
    """1 FLOP per input element; writes values and int64 indices."""
    x, out = _adaptive(args)
    return Work(x.numel, pieces(x), pieces(Piece(out, x.dtype), Piece(out, INT64)), x.dtype)


@cost_model("aten::_adaptive_avg_pool2d_backward", "aten::_adaptive_avg_pool3d_backward", family="pool")
def adaptive_avg_pool_backward(args: Arguments) -> Work:
    """1 FLOP per element of the input's gradient."""
    grad, x = args.tensor(0), args.tensor(1)
    return Work(x.numel, pieces(grad), pieces(x.like()), x.dtype)


def _adaptive(args: Arguments) -> tuple[Tensor, int]:
    x, rank = args.tensor(0), _rank(args)
    size = args.sizes(1)
    if len(size) != rank or len(x.dims) < rank:
        raise Unknown("bad_shapes")
    return x, product([*x.dims[:-rank], *size])


# FLOPs per element of the result: linear 1 product pair and 1 sum, bilinear 4 products and 3 sums.
_RESAMPLING = {"nearest": 0, "linear1d": 3, "bilinear": 7}


@cost_model(
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::_upsample_nearest_exact1d",
    "aten::_upsample_nearest_exact2d",
    "aten::_upsample_nearest_exact3d",
    "aten::upsample_linear1d",
    "aten::upsample_bilinear2d",
    "aten::upsample_trilinear3d",
    "aten::upsample_bicubic2d",
    "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_bicubic2d_aa",
    family="upsample",
)
def upsample(args: Arguments) -> Work:
    """Nearest: 0 FLOPs, and of a larger input no more is read than results are written.  Linear 3,
    bilinear 7 per element of the result; the others have no convention."""
    x = args.tensor(0)
    out = _resampled(args, x)
    # An anti-aliased kernel has as many taps as the scale asks for.
    smooth = args.name.endswith("_aa")
    per = None if smooth else next((cost for word, cost in _RESAMPLING.items() if word in args.name), None)
    read = min(x.unique, out) if "nearest" in args.name else x.unique
    reason = "no_convention" if per is None else ""
    flops = None if per is None else per * out
    return Work(flops, pieces(Piece(read, x.dtype)), pieces(Piece(out, x.dtype)), x.dtype, reason)


def _resampled(args: Arguments, x: Tensor) -> int:
    rank = _rank(args)
    if len(x.dims) < rank + 1:
        raise Unknown("bad_shapes")
    if args.ints(1):
        size = args.sizes(1)
    else:
        at = 2 if "nearest" in args.name else 3
        scales = _floats(args.text(at))
        if len(scales) != rank:
            raise Unknown("no_values")
        size = tuple(int(n * s) for n, s in zip(x.dims[-rank:], scales, strict=True))
    if len(size) != rank:
        raise Unknown("bad_shapes")
    return product([*x.dims[:-rank], *size])


def _floats(text: str | None) -> tuple[float, ...]:
    words = (text or "").strip("[] ").split(",")
    try:
        values = tuple(float(w) for w in words)
    except ValueError:
        return ()
    return values if all(0 <= v < 1 << 20 for v in values) else ()


@cost_model(
    "aten::upsample_nearest1d_backward",
    "aten::upsample_nearest2d_backward",
    "aten::upsample_nearest3d_backward",
    "aten::_upsample_nearest_exact1d_backward",
    "aten::_upsample_nearest_exact2d_backward",
    "aten::_upsample_nearest_exact3d_backward",
    "aten::upsample_linear1d_backward",
    "aten::upsample_bilinear2d_backward",
    "aten::upsample_trilinear3d_backward",
    "aten::upsample_bicubic2d_backward",
    "aten::_upsample_bilinear2d_aa_backward",
    "aten::_upsample_bicubic2d_aa_backward",
    family="upsample",
)
def upsample_backward(args: Arguments) -> Work:
    """Reads the gradient, writes one of the size of the input (the third argument); no convention for
    its FLOPs."""
    grad = args.tensor(0)
    out = Piece(product(args.sizes(2)), grad.dtype)
    return Work(None, pieces(grad), pieces(out), grad.dtype, "no_convention")


@cost_model("aten::grid_sampler_2d", "aten::grid_sampler_3d", "aten::cudnn_grid_sampler", family="upsample")
def grid_sampler(args: Arguments) -> Work:
    """(x [n, c, ..], grid [n, .., coordinates]): reads both, writes c values per point of the grid; its FLOPs
    have no convention."""
    x, grid = args.tensor(0), args.tensor(1)
    return Work(None, pieces(x, grid), pieces(Piece(_sampled(x, grid), x.dtype)), x.dtype, "no_convention")


@cost_model("aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward", family="upsample")
def grid_sampler_backward(args: Arguments) -> Work:
    """Reads dy, x and the grid, writes the gradients of x (as the mask asks) and of the grid."""
    grad, x, grid = (args.tensor(i) for i in range(3))
    wanted = args.flags(6) or (True, True)
    writes = pieces(x.like() if wanted[0] else None, grid.like())
    return Work(None, pieces(grad, x, grid), writes, x.dtype, "no_convention")


def _sampled(x: Tensor, grid: Tensor) -> int:
    if len(x.dims) < 3 or len(grid.dims) != len(x.dims):
        raise Unknown("bad_shapes")
    return product([*x.dims[:2], *grid.dims[1:-1]])


@cost_model(
    *(f"aten::{kind}_pad{n}d_backward" for kind in ("reflection", "replication") for n in (1, 2, 3)),
    family="copy",
)
def pad_backward(args: Arguments) -> Work:
    """(dy, x, margins): reads dy, writes a gradient as large as x; its FLOPs have no convention."""
    grad, x = args.tensor(0), args.tensor(1)
    return Work(None, pieces(grad), pieces(x.like()), x.dtype, "no_convention")
