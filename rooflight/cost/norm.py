"""Normalisations.  FLOPs are a convention: per element 5 for the statistics and scaling (mean 1, centre 1,
square and add 2, scale 1), 1 each for weight and bias; mean and deviation are kept in fp32.

Not counted: per row: the division, epsilon and root; a second pass over an input that does not stay in the
cache.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import FP32, statistics
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces


def _stats(x: Tensor, count: int) -> Piece:
    return Piece(count, statistics(x.dtype))


@cost_model(
    "aten::native_layer_norm",
    "aten::layer_norm",
    family="norm",
    params="x normalized_shape weight bias eps",
)
def layer_norm(args: Arguments) -> Work:
    """5 FLOPs per element, 1 more each for weight and bias.  Reads x, weight and bias, writes y and one
    fp32 mean and deviation per row."""
    x, weight, bias = args.tensor(0), args.maybe(2), args.maybe(3)
    rows = _rows(x, args.ints(1), weight)
    flops = x.numel * (5 + (weight is not None) + (bias is not None))
    return Work(flops, pieces(x, weight, bias), pieces(x.like(), _stats(x, 2 * rows)), x.dtype)


@cost_model(
    "aten::native_layer_norm_backward",
    family="norm_bwd",
    params="dy x normalized_shape mean rstd weight bias mask",
)
def layer_norm_backward(args: Arguments) -> Work:
    """10 FLOPs per element for dx, 2 for the weight's gradient and 1 for the bias's, as the mask asks.
    Reads dy, x, mean, deviation and weight (never the bias)."""
    dy, x = args.tensor(0), args.tensor(1)
    mask = _mask(args, 7)
    weight = args.maybe(5)
    moved = pieces(dy, x, args.maybe(3), args.maybe(4), weight)
    return _backward(x, mask, moved, weight.numel if weight else _row_size(x, args.ints(2)))


@cost_model(
    "aten::native_group_norm",
    family="norm",
    params="x weight bias N C HxW groups eps",
)
def group_norm(args: Arguments) -> Work:
    """As layer_norm, with a mean and deviation per sample and group."""
    x, weight, bias = args.tensor(0), args.maybe(1), args.maybe(2)
    groups = args.integer(6)
    flops = x.numel * (5 + (weight is not None) + (bias is not None))
    writes = None
    if x.numel == 0:
        writes = pieces(x.like())
    elif groups is not None and 0 < groups <= x.numel and x.dims:
        writes = pieces(x.like(), _stats(x, 2 * product([x.dims[0], groups])))
    return Work(flops, pieces(x, weight, bias), writes, x.dtype)


@cost_model(
    "aten::group_norm",
    "aiter::_groupnorm_run",
    family="norm",
    params="x groups weight bias eps",
)
def group_norm_composite(args: Arguments) -> Work:
    """As native_group_norm, (x, groups, weight, bias): a composite that writes y alone."""
    x, weight, bias = args.tensor(0), args.maybe(2), args.maybe(3)
    flops = x.numel * (5 + (weight is not None) + (bias is not None))
    return Work(flops, pieces(x, weight, bias), pieces(x.like()), x.dtype, "composite")


@cost_model(
    "aten::native_group_norm_backward",
    family="norm_bwd",
    params="dy x mean rstd weight N C HxW groups mask",
)
def group_norm_backward(args: Arguments) -> Work:
    """As layer_norm's backward: (dy, x, mean, deviation, weight, sizes, groups, mask)."""
    dy, x, weight = args.tensor(0), args.tensor(1), args.maybe(4)
    moved = pieces(dy, x, args.maybe(2), args.maybe(3), weight)
    return _backward(x, _mask(args, 9), moved, _channels(x))


@cost_model(
    "aten::native_batch_norm",
    "aten::_native_batch_norm_legit",
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
    "aten::batch_norm",
    "aten::_batch_norm_impl_index",
    family="norm",
)
def batch_norm(args: Arguments) -> Work:
    """Training: 5 FLOPs per element, 1 more each for weight and bias; reads x, weight, bias and the
    running statistics, writes y, the batch's statistics and the running ones back.  Evaluation: 2 FLOPs
    per element, nothing but y is written."""
    training = args.flag(3 if args.kind(3) == "Scalar" else 5)
    return _batch_norm(args, training)


@cost_model("aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional", family="norm")
def batch_norm_with_update(args: Arguments) -> Work:
    """As native_batch_norm in training: (x, weight, bias, running statistics, momentum, eps)."""
    return _batch_norm(args, True)


def _batch_norm(args: Arguments, training: bool | None) -> Work:
    x = args.tensor(0)
    weight, bias = args.maybe(1), args.maybe(2)
    # One overload has no running statistics.
    running = () if args.kind(3) == "Scalar" else (args.maybe(3), args.maybe(4))
    reads = pieces(x, weight, bias, *running)
    if training is None and args.has_values:
        raise Unknown("bad_shapes")
    if training is False:
        return Work(2 * x.numel, reads, pieces(x.like()), x.dtype)
    flops = x.numel * (5 + (weight is not None) + (bias is not None))
    return Work(flops, reads, pieces(x.like(), _stats(x, 2 * _channels(x)), *running), x.dtype)


@cost_model("aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update", family="norm")
def batch_norm_evaluation(args: Arguments) -> Work:
    """2 FLOPs per element; reads x, weight, bias and the running statistics, writes y."""
    x = args.tensor(0)
    return Work(2 * x.numel, pieces(x, [args.maybe(i) for i in (1, 2, 3, 4)]), pieces(x.like()), x.dtype)


@cost_model(
    "aten::native_batch_norm_backward",
    family="norm_bwd",
    params="dy x weight running_mean running_var save_mean save_invstd train eps mask",
)
def batch_norm_backward(args: Arguments) -> Work:
    """As layer_norm's backward.  In training the saved statistics are read, in evaluation the running
    ones: (dy, x, weight, running mean and variance, saved mean and deviation, train, eps, mask)."""
    dy, x, weight = args.tensor(0), args.tensor(1), args.maybe(2)
    first = 3 if args.flag(7) is False else 5
    moved = pieces(dy, x, weight, args.maybe(first), args.maybe(first + 1))
    return _backward(x, _mask(args, 9), moved, _channels(x))


@cost_model("aten::cudnn_batch_norm_backward", "aten::miopen_batch_norm_backward", family="norm_bwd")
def vendor_batch_norm_backward(args: Arguments) -> Work:
    """As native_batch_norm_backward with all three gradients, but (x, dy, weight, running statistics,
    saved statistics, ...); the running ones are handed over and not read."""
    x, dy, weight = args.tensor(0), args.tensor(1), args.maybe(2)
    moved = pieces(dy, x, weight, args.maybe(5), args.maybe(6))
    return _backward(x, (True, True, True), moved, _channels(x))


@cost_model(
    "aten::rms_norm",
    family="norm",
    params="x normalized_shape weight eps",
)
def rms_norm(args: Arguments) -> Work:
    """3 FLOPs per element (square and add, scale) and 1 for the weight.  A composite; y alone."""
    work = _rms(args.tensor(0), args.maybe(2))
    return Work(work.flops, work.reads, work.writes, work.dtype, "composite")


@cost_model(
    "aten::_fused_rms_norm",
    family="norm",
    params="x normalized_shape weight eps",
)
def fused_rms_norm(args: Arguments) -> Work:
    """As rms_norm; writes also one fp32 factor per row."""
    x, weight = args.tensor(0), args.maybe(2)
    rows = _rows(x, args.ints(1), weight)
    work = _rms(x, weight)
    return Work(work.flops, work.reads, pieces(x.like(), _stats(x, rows)), x.dtype)


@cost_model(
    "_C::rms_norm",
    "sgl_kernel::rmsnorm",
    "sgl_kernel::gemma_rmsnorm",
    family="norm",
    params="result x weight eps",
)
def rms_norm_into(args: Arguments) -> Work:
    """As rms_norm, of serving engines: (result, x, weight, eps)."""
    return _rms(args.tensor(1), args.maybe(2))


@cost_model(
    "vllm::rocm_aiter_rms_norm",
    "vllm_ir::rms_norm",
    "flashinfer::rmsnorm",
    "aiter::rms_norm",
    "aiter::rmsnorm2d_fwd",
    family="norm",
)
def rms_norm_plain(args: Arguments) -> Work:
    """As rms_norm, of serving engines: (x, weight, eps), in other releases with the result before them."""
    at = 0 if args.maybe(2) is None else 1
    return _rms(args.tensor(at), args.maybe(at + 1))


@cost_model(
    "_C::fused_add_rms_norm",
    "sgl_kernel::fused_add_rmsnorm",
    "sgl_kernel::gemma_fused_add_rmsnorm",
    "vllm::rocm_aiter_rmsnorm2d_fwd_with_add",
    "flashinfer::fused_add_rmsnorm",
    "vllm_ir::fused_add_rms_norm",
    family="norm",
    params="x residual weight eps",
)
def fused_add_rms_norm(args: Arguments) -> Work:
    """x and residual are added (1 FLOP) and normalised (3 + 1); both are read, both are written."""
    x, residual, weight = args.tensor(0), args.tensor(1), args.maybe(2)
    flops = x.numel * (4 + (weight is not None))
    return Work(flops, pieces(x, residual, weight), pieces(x.like(), residual.like()), x.dtype)


@cost_model("_C::rms_norm_static_fp8_quant", family="norm", params="result x weight scale eps")
def rms_norm_quant(args: Arguments) -> Work:
    """As rms_norm, (result, x, weight, scale): 1 FLOP more per element for the scale, which is read."""
    out, x, weight = args.tensor(0), args.tensor(1), args.maybe(2)
    flops = x.numel * (4 + (weight is not None))
    return Work(flops, pieces(x, weight, args.maybe(3)), pieces(out.like()), x.dtype)


@cost_model(
    "_C::fused_add_rms_norm_static_fp8_quant", family="norm", params="result x residual weight scale eps"
)
def fused_add_rms_norm_quant(args: Arguments) -> Work:
    """As fused_add_rms_norm, with 1 FLOP more per element for the scale; x itself is not written."""
    out, x, residual, weight = args.tensor(0), args.tensor(1), args.tensor(2), args.maybe(3)
    flops = x.numel * (5 + (weight is not None))
    return Work(
        flops, pieces(x, residual, weight, args.maybe(4)), pieces(out.like(), residual.like()), x.dtype
    )


@cost_model(
    "_C::rms_norm_dynamic_per_token_quant",
    "_C::rms_norm_per_block_quant",
    family="norm",
    params="result x weight scale eps scale_ub residual",
)
def rms_norm_dynamic_quant(args: Arguments) -> Work:
    """As rms_norm, with 2 FLOPs more per element for the largest value and the scale, which is written, and
    1 more for a residual, which is read and written."""
    out, x, weight, residual = args.tensor(0), args.tensor(1), args.maybe(2), args.maybe(6)
    flops = x.numel * (5 + (weight is not None) + (residual is not None))
    kept = None if residual is None else residual.like()
    reads = pieces(x, weight, args.maybe(5), residual)
    return Work(flops, reads, pieces(out.like(), args.maybe(3), kept), x.dtype)


@cost_model(
    "aten::_fused_rms_norm_backward",
    family="norm_bwd",
    params="dy x normalized_shape rstd weight mask",
)
def rms_norm_backward(args: Arguments) -> Work:
    """7 FLOPs per element for dx (6 without a weight), 2 for the weight's gradient."""
    dy, x, weight = args.tensor(0), args.tensor(1), args.maybe(4)
    mask = args.flags(5) or (True, weight is not None)
    dx, dw = mask[0], len(mask) > 1 and mask[1] and weight is not None
    flops = x.numel * (dx * (6 + (weight is not None)) + 2 * dw)
    writes = pieces(x.like() if dx else None, weight.like() if weight and dw else None)
    return Work(flops, pieces(dy, x, args.maybe(3), weight), writes, x.dtype)


@cost_model("aten::_weight_norm_interface", "aten::_weight_norm", family="norm")
def weight_norm(args: Arguments) -> Work:
    """w = g * v / |v|: 2 FLOPs per element for the norm, 1 to scale.  Writes w and the norms."""
    v, g = args.tensor(0), args.tensor(1)
    norms = Piece(g.numel, FP32 if v.dtype and v.dtype.size < FP32.size else v.dtype)
    return Work(3 * v.numel, pieces(v, g), pieces(v.like(), norms), v.dtype)


def _backward(x: Tensor, mask: tuple[bool, ...], reads: tuple[Piece, ...], params: int) -> Work:
    dx, dw, db = mask
    writes = [x.like()] if dx else []
    writes += [Piece(params, x.dtype)] * (dw + db)
    return Work(x.numel * (10 * dx + 2 * dw + db), reads, pieces(writes), x.dtype)


def _rms(x: Tensor, weight: Tensor | None) -> Work:
    return Work(x.numel * (3 + (weight is not None)), pieces(x, weight), pieces(x.like()), x.dtype)


def _mask(args: Arguments, i: int) -> tuple[bool, bool, bool]:
    flags = args.flags(i)
    if flags is None and args.has_values:
        raise Unknown("bad_shapes")
    return (*(flags or (True, True, True)), False, False, False)[:3]  # type: ignore[return-value]


def _row_size(x: Tensor, normalized: tuple[int, ...] | None, weight: Tensor | None = None) -> int:
    dims = normalized or (weight.dims if weight is not None else None)
    if dims is None or not dims or x.dims[-len(dims) :] != dims:
        raise Unknown("no_shapes")
    return product(dims)


def _rows(x: Tensor, normalized: tuple[int, ...] | None, weight: Tensor | None) -> int:
    size = _row_size(x, normalized, weight)
    return x.numel // size if size else 0


def _channels(x: Tensor) -> int:
    if len(x.dims) < 2:
        raise Unknown("bad_shapes")
    return x.dims[1]
