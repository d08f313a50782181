"""Softmax.  FLOPs are a convention: 5 per element forward (maximum, subtract, exponential, sum, divide).

Not counted: that an exponential takes more than one instruction; a second pass over rows that do not stay
in the cache.

Source: a convention of our own.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import FP32
from rooflight.cost.registry import cost_model
from rooflight.cost.work import Work, pieces


@cost_model("aten::_softmax", "aten::_log_softmax", family="softmax")
def softmax(args: Arguments) -> Work:
    """5 FLOPs per element; reads x, writes a result of its type (fp32 when it converts on the way)."""
    x = args.tensor(0)
    out = x.like(FP32 if args.flag(2) and x.dtype else None)
    return Work(5 * x.numel, pieces(x), pieces(out), x.dtype)


@cost_model("aten::_safe_softmax", family="softmax")
def safe_softmax(args: Arguments) -> Work:
    """As _softmax; rows without a finite entry become 0.  (x, dim, type)"""
    x = args.tensor(0)
    return Work(5 * x.numel, pieces(x), pieces(x.like(args.dtype_code(2) if x.dtype else None)), x.dtype)


@cost_model("aten::_masked_softmax", family="softmax")
def masked_softmax(args: Arguments) -> Work:
    """As _softmax; reads the mask too."""
    x = args.tensor(0)
    return Work(5 * x.numel, pieces(x, args.tensor(1)), pieces(x.like()), x.dtype)


@cost_model("aten::softmax", "aten::log_softmax", "aten::special_softmax", family="softmax")
def softmax_composite(args: Arguments) -> Work:
    """As _softmax; the third argument is the type of the result.  A composite."""
    x = args.tensor(0)
    out = x.like(args.dtype_code(2) if x.dtype else None)
    return Work(5 * x.numel, pieces(x), pieces(out), x.dtype, "composite")


@cost_model("aten::_softmax_backward_data", "aten::_log_softmax_backward_data", family="softmax_bwd")
def softmax_backward(args: Arguments) -> Work:
    """(dy - sum(dy*y)) * y: 4 FLOPs per element.  Reads dy and y, writes dx in the type of the input."""
    dy, y = args.tensor(0), args.tensor(1)
    out = dy.like(args.dtype_code(3) if dy.dtype else None)
    return Work(4 * dy.numel, pieces(dy, y), pieces(out), dy.dtype)
