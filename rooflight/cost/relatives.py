"""What a row lacks and another row, or the kernel, of the same call has (DEFINITIONS, section 9).

Recordings up to 2022 hold the dims of tensors and no values: no strides, no sizes.  The result of a
convolution is then the gradient that flows back into it, and the gradient of a weight is as large as the
weight that the op around it was given.  Of a list of tensors they hold nothing: what ``aten::cat`` puts
together is as large as the gradient that flows back into it, or as the parts that the backward op around it
was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from rooflight.cost import registry
from rooflight.cost.arguments import Arguments
from rooflight.cost.conv import operand_order
from rooflight.cost.model import OpCall
from rooflight.cost.tensor import Unknown

_WEIGHT = 2
_BACKWARD = "conv_bwd"
_CONVOLUTIONS = frozenset({"conv_fwd", "conv_dgrad", "conv_wgrad"})
#: Ops that put a list of tensors together.
JOINING = frozenset({"aten::cat", "aten::_cat", "aten::stack"})
_JOINED = re.compile(r"(?:Cat|Stack)Backward\d*")
_PARTED = re.compile(r"(?:Split|SplitWithSizes|UnsafeSplit|Unbind)Backward\d*")


def completed(call: OpCall, parent: OpCall | None = None, backward: OpCall | None = None) -> OpCall:
    """``call`` with the dims of its result where it needs them and a relative tells them.

    ``parent`` is the op around it, ``backward`` the backward op with its Sequence number.  The call
    comes back as it is when its row has values, or when no relative fits.
    """
    if call.concrete or call.output_dims is not None:
        return call
    family = _family(call)
    if call.op in JOINING:
        return _joined(call, parent, backward)
    if family == "conv_fwd" and _is_backward(backward):
        return _told(call, backward, lambda op: operand_order(op)[0], "dO of")
    if family == "conv_dgrad" and _is_backward(parent):
        return _told(call, parent, lambda op: operand_order(op)[1], "dims of")
    if family == "conv_wgrad" and _is_backward(parent):
        return _told(call, parent, lambda _: _WEIGHT, "dims of")
    return call


def related(op: str) -> bool:
    """Whether rows of this op may lack what a relative has."""
    return op in JOINING or registry.family_of(op) in _CONVOLUTIONS


def is_backward(op: str) -> bool:
    """Whether it is given the gradient of a result that the row of its forward op may lack."""
    return registry.family_of(op) == _BACKWARD or _JOINED.fullmatch(op) is not None


def typed(call: OpCall, kernel_dtype: str | None) -> OpCall:
    """``call`` with the element type of its lists, from the name of its kernel: "fp32", "2-byte", ..."""
    if kernel_dtype is None or "TensorList" not in call.types:
        return call
    told = replace(call, list_type=kernel_dtype)
    return call if Arguments(told).list_type is None else told


def _family(call: OpCall | None) -> str | None:
    return registry.family_of(call.op) if call is not None and isinstance(call.op, str) else None


def _is_backward(call: OpCall | None) -> bool:
    return _family(call) == _BACKWARD


def _joined(call: OpCall, parent: OpCall | None, backward: OpCall | None) -> OpCall:
    """A concatenation whose parts are not recorded, with the dims of the whole."""
    if any(isinstance(dims, list | tuple) and dims for dims in call.dims[:1]):
        return call
    if backward is not None and _JOINED.fullmatch(backward.op):
        return _told(call, backward, lambda _: 0, "dO of")
    if parent is not None and _PARTED.fullmatch(parent.op):
        return _told_in_parts(call, parent)
    return call


def _told_in_parts(call: OpCall, parent: OpCall) -> OpCall:
    """The whole is all that the op around it was given, where each part of that is recorded."""
    given = Arguments(parent)
    try:
        whole = sum(given.tensor(i).numel for i in range(len(given)))
    except Unknown:
        return call
    if not given.has_types:
        return call
    return replace(call, output_dims=(whole,), output_source=f"dims of {parent.op}")


def _told(call: OpCall, relative: OpCall | None, where: Callable[[str], int], what: str) -> OpCall:
    if relative is None:
        return call
    try:
        dims = Arguments(relative).tensor(where(relative.op)).dims
    except Unknown:
        return call
    return replace(call, output_dims=dims, output_source=f"{what} {relative.op}")
