"""Moves without arithmetic: copies, casts, fills, joins, and the ops that only look differently at the
same memory.  0 FLOPs.

Not counted: the conversion of a cast; parts of a memory line that a strided copy moves and does not need.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.gemm import broadcast
from rooflight.cost.promotion import FP32, result_type
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import COMPOSITE, NOTHING, Work, pieces
from rooflight.dtypes import DType
from rooflight.trace.timeline import EXECUTION_TRACE

# Views that were asked for as copies.
_COPIES = (
    *("view", "_reshape", "permute", "transpose", "t", "squeeze", "unsqueeze", "alias", "detach"),
    *("split", "split_with_sizes", "unbind", "lift_fresh"),
)
_TO_DTYPE = 5  # arguments of to(dtype, non_blocking, copy, memory_format), which cannot change the device


def _copied(x: Tensor, dtype: DType | None = None, reason: str = "") -> Work:
    return Work(0, pieces(x), pieces(x.like(dtype if x.dtype else None)), x.dtype, reason)


@cost_model("aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize", family="copy", at_most=4)
def copy_(args: Arguments) -> Work:
    """(destination, source): reads the source alone, unbroadcast, writes all of the destination, each in
    its own type."""
    first, second = args.tensor(0), args.tensor(1)
    target, source = (first, second) if args.name.startswith("aten::copy_") else (second, first)
    broadcast(target.dims, source.dims)
    return Work(0, pieces(source), pieces(target.like()), target.dtype)


@cost_model(
    "aten::clone",
    "aten::roll",
    "aten::flip",
    "aten::rot90",
    "aten::tril",
    "aten::triu",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::channel_shuffle",
    "aten::native_channel_shuffle",
    "aten::fliplr",
    "aten::flipud",
    *(f"aten::{name}_copy" for name in _COPIES),
    family="copy",
)
def clone(args: Arguments) -> Work:
    """Reads what is different in x (overlapping windows and expanded dims once), writes a dense copy."""
    return _copied(args.tensor(0))


@cost_model("aten::_to_copy", family="copy")
def to_copy(args: Arguments) -> Work:
    """A cast or a move: reads x, writes it in the type asked for.  A composite over copy_."""
    return _copied(args.tensor(0), args.dtype_code(1), COMPOSITE)


@cost_model("aten::to", "aten::type_as", family="copy")
def to(args: Arguments) -> Work:
    """Nothing when a type is asked for that x has already, else a cast.  A composite: the overloads that
    may also move x to another device do not record which, but their copy_ is recorded."""
    x, other = args.tensor(0), args.maybe(1)
    asked = other.dtype if other is not None else args.dtype_code(1) or args.dtype_code(2)
    if asked is None or x.dtype is None:
        return Work(0, None, None, x.dtype, COMPOSITE)
    if asked.name != x.dtype.name:
        return _copied(x, asked, COMPOSITE)
    stays = len(args) == _TO_DTYPE and args.flag(3) is not True
    return NOTHING if stays else Work(0, None, None, x.dtype, COMPOSITE)


@cost_model(
    "aten::contiguous",
    "aten::reshape",
    "aten::flatten",
    "aten::resolve_conj",
    "aten::resolve_neg",
    "aten::reshape_as",
    "aten::ravel",
    family="copy",
)
def contiguous(args: Arguments) -> Work:
    """Nothing for memory that is in order already, else a copy.  A composite over clone."""
    x = args.tensor(0)
    in_order = x.is_contiguous()
    if in_order or "resolve" in args.name:
        return NOTHING
    if in_order is None or not args.name.endswith("contiguous"):
        # A reshape may still find strides that fit.
        return Work(0, None, None, x.dtype, COMPOSITE)
    return _copied(x, None, COMPOSITE)


@cost_model("aten::repeat", "aten::tile", family="copy")
def repeat(args: Arguments) -> Work:
    """Reads x once and writes it as often as asked.  A composite."""
    x = args.tensor(0)
    out = product([x.numel, product(args.sizes(1))])
    return Work(0, pieces(x), pieces(Piece(out, x.dtype)), x.dtype, COMPOSITE)


@cost_model("aten::repeat_interleave", family="copy")
def repeat_interleave(args: Arguments) -> Work:
    """Reads x once and writes it as often as asked; with counts in a tensor it takes an execution trace to
    know how often that is."""
    x, times = args.tensor(0), args.integer(1)
    if times is None and len(made := args.results()) == 1:
        return Work(0, pieces(x, args.maybe(1)), pieces(made[0].like()), x.dtype, EXECUTION_TRACE)
    if times is None or times < 0:
        raise Unknown("data_dependent")
    out = Piece(product([x.numel, times]), x.dtype)
    return Work(0, pieces(x), pieces(out), x.dtype, COMPOSITE)


@cost_model(
    "aten::cat",
    "aten::_cat",
    "aten::stack",
    "aten::concat",
    "aten::hstack",
    "aten::vstack",
    "aten::dstack",
    "aten::column_stack",
    family="copy",
)
def cat(args: Arguments) -> Work:
    """Reads every part and writes the whole, in the type that holds all.  The type of a list's elements is
    recorded by an execution trace only: without one, bytes are unknown (``dtype_unknown``) unless the
    kernel's name tells it.  Where the parts are not recorded either, the gradient of the whole, or in a
    backward pass the gradients that are put together, tell how large it is."""
    if args.call.output_dims is not None:
        return _whole(args)
    parts = args.tensors(0)
    dtype = args.list_type or result_type(parts)
    whole = Piece(sum(t.numel for t in parts), dtype)
    return Work(0, pieces(parts), pieces(whole), None if args.list_type else dtype)


def _whole(args: Arguments) -> Work:
    """All that is put together is read and written once."""
    whole = pieces(Piece(product(args.call.output_dims or ()), args.list_type))
    return Work(0, whole, whole, None, args.call.output_source if args.list_type else "")


@cost_model(
    "aten::constant_pad_nd",
    "aten::pad",
    "aten::reflection_pad1d",
    "aten::reflection_pad2d",
    "aten::reflection_pad3d",
    "aten::replication_pad1d",
    "aten::replication_pad2d",
    "aten::replication_pad3d",
    family="copy",
)
def pad(args: Arguments) -> Work:
    """Reads x, writes it with its margins: (before, after) pairs from the last dim on."""
    x, margins = args.tensor(0), args.ints(1)
    if not margins or len(margins) % 2 or len(margins) > 2 * len(x.dims):
        raise Unknown("no_shapes")
    dims = list(x.dims)
    for i in range(len(margins) // 2):
        dims[-1 - i] += margins[2 * i] + margins[2 * i + 1]
    if min(dims) < 0:
        raise Unknown("bad_shapes")
    return Work(0, pieces(x), pieces(Piece(product(dims), x.dtype)), x.dtype)


@cost_model("aten::fill_", "aten::zero_", family="fill")
def fill(args: Arguments) -> Work:
    """Writes the tensor, reads nothing."""
    x = args.tensor(0)
    return Work(0, (), pieces(x.like()), x.dtype)


@cost_model("aten::fill", family="fill")
def filled(args: Arguments) -> Work:
    """A tensor like x of one value; x is not read."""
    x = args.tensor(0)
    return Work(0, (), pieces(x.like()), x.dtype)


@cost_model("aten::scalar_tensor", family="fill")
def scalar_tensor(args: Arguments) -> Work:
    """One element of the type asked for, else fp32."""
    return _filled(1, args.dtype_code(1) or FP32)


@cost_model("aten::zeros", "aten::ones", "aten::new_zeros", "aten::new_ones", family="fill")
def zeros(args: Arguments) -> Work:
    """Writes a new tensor of the size and type asked for (the default type is fp32).  A composite."""
    new = "new_" in args.name
    size, at = (args.sizes(1), 2) if new else (args.sizes(0), 1)
    default = args.tensor(0).dtype if new else FP32
    return _filled(product(size), args.dtype_code(at) or default)


@cost_model("aten::full", family="fill")
def full(args: Arguments) -> Work:
    """As zeros, with a value that gives the type when none is asked for."""
    default = result_type([], [args.text(1)])
    return _filled(product(args.sizes(0)), args.dtype_code(2) or default)


@cost_model("aten::new_full", family="fill")
def new_full(args: Arguments) -> Work:
    """As zeros, (x, size, value, type); the type of x unless one is asked for.  A composite."""
    x = args.tensor(0)
    return _filled(product(args.sizes(1)), (args.dtype_code(3) or x.dtype) if x.dtype else None)


@cost_model("aten::slice_backward", "aten::select_backward", family="copy")
def slice_backward(args: Arguments) -> Work:
    """The gradient of a slice: reads it, writes a tensor of the size of the whole.  A composite."""
    grad = args.tensor(0)
    out = Piece(product(args.sizes(1)), grad.dtype)
    return Work(0, pieces(grad), pieces(out), grad.dtype, COMPOSITE)


@cost_model("aten::diagonal_backward", family="copy")
def diagonal_backward(args: Arguments) -> Work:
    """As slice_backward, of a diagonal.  A composite."""
    return slice_backward(args)


@cost_model("aten::unfold_backward", family="index")
def unfold_backward(args: Arguments) -> Work:
    """Windows summed into the tensor they were taken from: 1 FLOP per element of the gradient; reads it,
    writes the whole (the second argument)."""
    grad = args.tensor(0)
    return Work(grad.numel, pieces(grad), pieces(Piece(product(args.sizes(1)), grad.dtype)), grad.dtype)


@cost_model("aten::zeros_like", "aten::ones_like", "aten::full_like", family="fill")
def zeros_like(args: Arguments) -> Work:
    """As zeros, in the size (and type, unless one is asked for) of a tensor.  A composite."""
    x = args.tensor(0)
    asked = args.dtype_code(2 if args.name.endswith("full_like") else 1)
    return _filled(x.numel, (asked or x.dtype) if x.dtype else None)


def _filled(n: int, dtype: DType | None) -> Work:
    return Work(0, (), pieces(Piece(n, dtype)), dtype, COMPOSITE)


# fmt: off
_LOOKS = (
    "view", "as_strided", "transpose", "transpose_", "t", "t_", "permute", "expand", "expand_as",
    "slice", "select", "narrow", "unsqueeze", "unsqueeze_", "squeeze", "squeeze_", "detach", "detach_",
    "alias", "view_as", "_unsafe_view", "_reshape_alias", "split", "split_with_sizes", "chunk", "unbind",
    "unfold", "diagonal", "swapaxes", "swapdims", "movedim", "moveaxis", "lift", "lift_fresh", "numpy_T",
    "mT", "mH", "adjoint", "conj", "_conj", "real", "imag", "view_as_real", "view_as_complex",
    "broadcast_to", "unflatten", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "dsplit",
    "matrix_H", "meshgrid", "atleast_1d", "atleast_2d", "atleast_3d", "_neg_view", "empty_permuted",
    "is_same_size", "item", "_local_scalar_dense",
    "broadcast_tensors", "tensor_split", "hsplit", "vsplit", "as_strided_",
    "set_", "resize_", "resize_as_", "empty", "empty_like", "empty_strided", "new_empty",
    "new_empty_strided", "_efficientzerotensor", "result_type", "record_stream", "is_nonzero",
    "is_pinned", "is_floating_point", "is_complex", "numel", "size", "stride",
    "_has_compatible_shallow_copy_type", "_nested_tensor_from_mask", "requires_grad_", "retain_grad",
    "_version",
)
# fmt: on


@cost_model(
    *(f"aten::{name}" for name in _LOOKS),
    "detach",
    "detach_",
    family="copy",
)
def view(args: Arguments) -> Work:
    """Another look at the same memory, or memory that is only reserved: no bytes, no FLOPs."""
    del args
    return NOTHING
