"""Convolutions: forward, transposed, and their gradients.

Taps that fall on the padding are counted, as every
implementation's own count does.

Not counted: the bias, an activation in the epilogue, and what an algorithm moves besides (unfolded windows,
transformed tiles, changes of layout).

Source: torch's own FlopCounterMode for the forward pass and both gradients (pytorch/pytorch
torch/utils/flop_counter.py @0140b62d, read 2026-12-02). Bytes are our own convention.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflight.cost.arguments import Arguments
from rooflight.cost.derivation import named
from rooflight.cost.gemm import multiply_adds
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import INT64_MAX, Piece, Tensor, Unknown, product
from rooflight.cost.work import Moved, Work, pieces

CONV = "input weight bias stride padding dilation groups"
CONV_TRANSPOSE = "input weight bias stride padding output_padding groups dilation"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an op keeps its arguments; they differ from library to library.  None: it has none."""

    bias: int | None = 2
    stride: int | None = 3
    padding: int | None = 4
    dilation: int | None = 5
    groups: int | None = None
    transposed: int | bool = False
    output_padding: int | None = None


@cost_model(
    "aten::convolution",
    "aten::_convolution",
    "aten::convolution_overrideable",
    family="conv_fwd",
    matrix=True,
    params="input weight bias stride padding dilation transposed output_padding groups",
)
def convolution(args: Arguments) -> Work:
    """2 * numel(out) * prod(weight dims after the first) FLOPs, the weight being [out, in/groups, taps].
    Transposed: 2 * numel(input) * the same product, the weight being [in, out/groups, taps].
    Reads input, weight and bias, writes the result."""
    return _forward(args, Layout(groups=8, transposed=6, output_padding=7))


@cost_model(
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::_convolution_mode",
    family="conv_fwd",
    matrix=True,
    params=CONV,
)
def conv(args: Arguments) -> Work:
    """As convolution; the padding may be the word "same" or "valid", and the input may lack its batch
    dim.  A padding that was a word but was not recorded is "same" (the one that needs the word)."""
    return _forward(args, Layout(groups=6))


@cost_model(
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    family="conv_fwd",
    matrix=True,
    params=CONV_TRANSPOSE,
)
def conv_transpose(args: Arguments) -> Work:
    """As the transposed convolution."""
    return _forward(args, Layout(output_padding=5, groups=6, dilation=7, transposed=True))


@cost_model("aten::cudnn_convolution", family="conv_fwd", matrix=True)
def cudnn_convolution(args: Arguments) -> Work:
    """As convolution, with the padding before the stride and without a bias; recordings of 2020 have a
    bias before them."""
    shift = 0 if args.ints(2) is not None else 1
    bias = 2 if shift else None
    return _forward(args, Layout(bias, 3 + shift, 2 + shift, 4 + shift, groups=5 + shift))


@cost_model(
    "aten::miopen_convolution",
    "aten::miopen_depthwise_convolution",
    "aten::mkldnn_convolution",
    "mkldnn::_convolution_pointwise",
    family="conv_fwd",
    matrix=True,
)
def miopen_convolution(args: Arguments) -> Work:
    """As convolution, with the padding before the stride."""
    return _forward(args, Layout(padding=3, stride=4, groups=6))


@cost_model("aten::cudnn_convolution_transpose", family="conv_fwd", matrix=True)
def cudnn_convolution_transpose(args: Arguments) -> Work:
    """As the transposed convolution, with cuDNN's order of arguments."""
    layout = Layout(None, padding=2, output_padding=3, stride=4, dilation=5, groups=6, transposed=True)
    return _forward(args, layout)


@cost_model("aten::miopen_convolution_transpose", family="conv_fwd", matrix=True)
def miopen_convolution_transpose(args: Arguments) -> Work:
    """As the transposed convolution, with MIOpen's order of arguments."""
    layout = Layout(padding=3, output_padding=4, stride=5, dilation=6, groups=7, transposed=True)
    return _forward(args, layout)


@cost_model("aten::cudnn_convolution_relu", family="conv_fwd", matrix=True)
def cudnn_convolution_relu(args: Arguments) -> Work:
    """As convolution; the activation in the epilogue is not counted."""
    return _forward(args, Layout(groups=6))


@cost_model("aten::cudnn_convolution_add_relu", family="conv_fwd", matrix=True)
def cudnn_convolution_add_relu(args: Arguments) -> Work:
    """As convolution; reads also the tensor that is added in the epilogue."""
    layout = Layout(bias=4, stride=5, padding=6, dilation=7, groups=8)
    return _forward(args, layout, args.maybe(2))


@cost_model(
    "aten::thnn_conv2d",
    "aten::slow_conv3d",
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d_forward",
    family="conv_fwd",
    matrix=True,
)
def slow_conv(args: Arguments) -> Work:
    """As convolution, of the native fallback: the kernel size comes before the bias, no dilation."""
    return _forward(args, Layout(bias=3, stride=4, padding=5, dilation=None))


@cost_model("aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d", family="conv_fwd", matrix=True)
def slow_conv_transpose(args: Arguments) -> Work:
    """As the transposed convolution, of the native fallback: the kernel size comes before the bias."""
    layout = Layout(bias=3, stride=4, padding=5, output_padding=6, dilation=7, transposed=True)
    return _forward(args, layout)


@cost_model("aten::im2col", family="conv_aux")
def im2col(args: Arguments) -> Work:
    """(x, kernel, dilation, padding, stride): each window written out as a column; 0 FLOPs."""
    x, kernel = args.tensor(0), _planar(args, 1)
    if len(x.dims) not in (3, 4):
        raise Unknown("bad_shapes")
    sizes = _spatial(args, Layout(stride=4, padding=3, dilation=2), x.dims[-2:], kernel, False)
    out = product([*x.dims[:-2], *kernel, *sizes])
    return Work(0, pieces(x), pieces(Piece(out, x.dtype)), x.dtype)


@cost_model("aten::col2im", family="conv_aux")
def col2im(args: Arguments) -> Work:
    """(columns, size, kernel, ..): columns summed back into an image, 1 FLOP per element of them."""
    x, size, taps = args.tensor(0), _planar(args, 1), product(_planar(args, 2))
    if len(x.dims) not in (2, 3) or not taps or x.dims[-2] % taps:
        raise Unknown("bad_shapes")
    out = product([*x.dims[:-2], x.dims[-2] // taps, *size])
    return Work(x.numel, pieces(x), pieces(Piece(out, x.dtype)), x.dtype)


@cost_model(
    "aten::_conv_depthwise2d",
    "aten::conv_depthwise3d",
    "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d",
    "aten::thnn_conv_depthwise2d",
    family="conv_fwd",
    matrix=True,
)
def dilated_conv(args: Arguments) -> Work:
    """As convolution, of the native depthwise and dilated kernels."""
    return _forward(args, Layout(bias=3, stride=4, padding=5, dilation=6))


@cost_model(
    "aten::convolution_backward",
    "aten::convolution_backward_overrideable",
    family="conv_bwd",
    matrix=True,
)
def convolution_backward(args: Arguments) -> Work:
    """Each multiply-add of the forward pass appears once in the gradient of the input and once in that
    of the weight: forward FLOPs times the number of them that the mask asks for.  Reads dO, the weight
    for the input's gradient and the input for the weight's; writes what the mask asks for."""
    return gradients(args).work()


@cost_model("aten::cudnn_convolution_backward", family="conv_bwd", matrix=True)
def cudnn_convolution_backward(args: Arguments) -> Work:
    """As convolution_backward, of torch up to 1.10: (input, dO, weight, ..., mask of two)."""
    return gradients(args).work()


@cost_model("aten::miopen_convolution_backward", family="conv_bwd", matrix=True)
def miopen_convolution_backward(args: Arguments) -> Work:
    """As convolution_backward, of torch up to 1.10: (input, dO, weight, ..., mask of three)."""
    return gradients(args).work()


@cost_model(
    "aten::cudnn_convolution_backward_input",
    "aten::miopen_convolution_backward_input",
    family="conv_dgrad",
    matrix=True,
)
def backward_input(args: Arguments) -> Work:
    """The gradient of the input alone: forward FLOPs, reads dO and the weight.  (size, dO, weight)"""
    grad, w = args.tensor(1), args.tensor(2)
    dims = _own_dims(args)
    writes = None if dims is None else pieces(Piece(product(dims), grad.dtype))
    return Work(_macs(grad, w), pieces(grad, w), writes, grad.dtype, _source(args))


@cost_model(
    "aten::cudnn_convolution_backward_weight",
    "aten::miopen_convolution_backward_weight",
    family="conv_wgrad",
    matrix=True,
)
def backward_weight(args: Arguments) -> Work:
    """The gradient of the weight alone: forward FLOPs, reads dO and the input.  (size, dO, input)"""
    grad, x = args.tensor(1), args.tensor(2)
    dims = _own_dims(args)
    if dims is None:
        raise Unknown("no_shapes")
    w = Tensor(dims, grad.dtype)
    return Work(_macs(grad, w), pieces(grad, x), pieces(w), grad.dtype, _source(args))


@dataclass(frozen=True, slots=True)
class Gradients:
    """The operands of a convolution's backward pass, and which gradients are wanted."""

    grad: Tensor
    x: Tensor
    w: Tensor
    mask: tuple[bool, ...]
    macs: int

    def work(self) -> Work:
        reads = pieces(self.grad, self.w if self.mask[0] else None, self.x if self.mask[1] else None)
        writes = pieces(
            self.x.like() if self.mask[0] else None,
            self.w.like() if self.mask[1] else None,
            self._bias() if self.mask[2] else None,
        )
        return Work(self.macs * (self.mask[0] + self.mask[1]), reads, writes, self.grad.dtype)

    def share_of_input(self) -> Work | None:
        """What the kernel of the input's gradient does, None when it is not wanted."""
        if not self.mask[0]:
            return None
        return Work(self.macs, pieces(self.grad, self.w), pieces(self.x.like()), self.grad.dtype)

    def share_of_weight(self) -> Work | None:
        """What the kernel of the weight's gradient does, None when it is not wanted."""
        if not self.mask[1]:
            return None
        return Work(self.macs, pieces(self.grad, self.x), pieces(self.w.like()), self.grad.dtype)

    def _bias(self) -> Piece:
        channels = self.grad.dims[1] if len(self.grad.dims) > 1 else 1
        return Piece(channels, self.grad.dtype)


def gradients(args: Arguments) -> Gradients:
    """The operands of a backward pass, in whatever order its library takes them."""
    grad, x, mask = operand_order(args.name)
    dy, inp, w = args.tensor(grad), args.tensor(x), args.tensor(2)
    # Older recordings have no values: both gradients, as everywhere but in a first layer.
    wanted = args.flags(mask) or (True, True, False)
    transposed = grad == 0 and args.flag(7) is True
    return Gradients(dy, inp, w, (*wanted, False, False)[:3], _macs(inp if transposed else dy, w))


def operand_order(op: str) -> tuple[int, int, int]:
    """Where a backward op keeps dO, the input and the mask; the weight is always third."""
    if "cudnn" in op:
        return 1, 0, 10
    return (1, 0, 9) if "miopen" in op else (0, 1, 10)


def _forward(args: Arguments, at: Layout, extra: Moved = None) -> Work:
    x, w = args.tensor(0), args.tensor(1)
    taps = len(w.dims) - 2
    if taps < 1 or len(x.dims) not in (taps + 1, taps + 2):
        raise Unknown("bad_shapes")
    transposed = at.transposed if isinstance(at.transposed, bool) else args.flag(at.transposed) is True
    unbatched = len(x.dims) == taps + 1
    out = _told(args)
    if out is None:
        spatial = _spatial(args, at, x.dims[-taps:], w.dims[2:], transposed)
        channels = w.dims[1] * _groups(args, at) if transposed else w.dims[0]
        places = [named(n, f"out[{i}]") for i, n in enumerate(spatial, 1 if unbatched else 2)]
        out = (*x.dims[: 0 if unbatched else 1], channels, *places)
    result = Piece(product(out), x.dtype)
    base = x.numel if transposed else result.elements
    flops = multiply_adds(1, base, product(w.dims[1:]), 1, x.dtype)
    bias = None if at.bias is None else args.maybe(at.bias)
    return Work(flops, pieces(x, w, bias, extra), pieces(result), x.dtype, _source(args))


def _spatial(
    args: Arguments, at: Layout, size: tuple[int, ...], kernel: tuple[int, ...], transposed: bool
) -> list[int]:
    if not args.has_values:
        raise Unknown("no_strides_recorded")
    n = len(size)
    stride = _per_dim(args, at.stride, n, 1)
    dilation = _per_dim(args, at.dilation, n, 1)
    word = _padding_word(args, at)
    if word == "same":
        return list(size)
    pad = [0] * n if word == "valid" else _per_dim(args, at.padding, n, 0)
    extra = _per_dim(args, at.output_padding, n, 0)
    sizes = []
    for i in range(n):
        reach = dilation[i] * (kernel[i] - 1)
        if transposed:
            sizes.append((size[i] - 1) * stride[i] - 2 * pad[i] + reach + 1 + extra[i])
        else:
            sizes.append((size[i] + 2 * pad[i] - reach - 1) // stride[i] + 1)
    if any(s < 0 for s in sizes):
        raise Unknown("bad_shapes")
    return sizes


def _padding_word(args: Arguments, at: Layout) -> str | None:
    """ "same" or "valid".  Some recorders drop words: an argument that is neither a list nor a scalar
    was one, and only "same" differs from leaving it out."""
    if at.padding is None:
        return None
    text = args.text(at.padding)
    if text in ("same", "valid"):
        return text
    return "same" if text is None and args.kind(at.padding) == "" and args.has_types else None


def _per_dim(args: Arguments, i: int | None, n: int, default: int) -> tuple[int, ...]:
    values = None if i is None else args.ints(i)
    if not values:
        return (default,) * n
    values = values * n if len(values) == 1 else values
    if len(values) != n or any(not default <= v <= INT64_MAX for v in values):
        raise Unknown("bad_shapes")
    return values


def _planar(args: Arguments, i: int) -> tuple[int, ...]:
    """A height and a width; one number is both."""
    sizes = args.sizes(i)
    if len(sizes) not in (1, 2):
        raise Unknown("bad_shapes")
    return sizes * 2 if len(sizes) == 1 else sizes


def _groups(args: Arguments, at: Layout) -> int:
    groups = 1 if at.groups is None else args.integer(at.groups)
    return groups if groups and groups > 0 else 1


def _macs(out: Tensor, w: Tensor) -> int:
    if len(w.dims) < 3 or len(out.dims) != len(w.dims):
        raise Unknown("bad_shapes")
    return multiply_adds(1, out.numel, product(w.dims[1:]), 1, out.dtype)


def _own_dims(args: Arguments) -> tuple[int, ...] | None:
    """Dims of the gradient that is made: the first argument, else the caller's word."""
    return args.sizes(0) if args.has_values else _told(args)


def _told(args: Arguments) -> tuple[int, ...] | None:
    """The result's dims as the caller knows them from another row; only where the own row has none."""
    return None if args.has_values else args.call.output_dims


def _source(args: Arguments) -> str:
    return "" if _told(args) is None else args.call.output_source
