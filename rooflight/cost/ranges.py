"""Tensors made of a rule: counts up to an end, even steps, the unit matrix.  What is computed per element
has no convention: FLOPs unknown.

Not counted: the arithmetic of the rule.

Source: a convention of our own; types as torch's documentation of each op gives them.
"""

from __future__ import annotations

import math

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import FP32, result_type
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import INT64_MAX, Piece, Unknown, product
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import DType

_TAIL = 4  # type, layout, device, pinned: what follows the numbers


def _count(args: Arguments) -> tuple[int, DType | None]:
    """How many numbers stand first, and the type that is asked for: an argument, or that of the tensor that
    the result goes into, which then comes last."""
    last = len(args) - 1
    out = args.maybe(last) if last > 0 else None
    return (last, out.dtype) if out is not None else (len(args) - _TAIL, args.dtype_code(len(args) - _TAIL))


def _new(n: int, dtype: DType | None) -> Work:
    return Work(None, (), pieces(Piece(n, dtype)), dtype, "no_convention")


@cost_model("aten::arange", family="elementwise")
def arange(args: Arguments) -> Work:
    """(end), (start, end) or (start, end, step): whole numbers are int64, others fp32."""
    count, asked = _count(args)
    texts = [args.text(i) for i in range(count)]
    numbers = [args.number(i) for i in range(count)]
    if not 1 <= count <= 3 or any(n is None for n in numbers):
        raise Unknown("no_values")
    values = [n for n in numbers if n is not None]
    start, end = (0.0, values[0]) if count == 1 else values[:2]
    step = values[2] if count == 3 else 1.0
    steps = (end - start) / step if step else math.inf
    if not 0 <= steps <= INT64_MAX:
        raise Unknown("bad_shapes")
    return _new(math.ceil(steps), asked or result_type([], texts))


@cost_model("aten::linspace", "aten::logspace", family="elementwise")
def linspace(args: Arguments) -> Work:
    """(start, end, steps): fp32 unless another type is asked for; ends that are tensors are read."""
    steps = args.integer(2)
    if steps is None or steps < 0:
        raise Unknown("no_values")
    work = _new(steps, _count(args)[1] or FP32)
    return Work(None, pieces(args.maybe(0), args.maybe(1)), work.writes, work.dtype, work.reason)


@cost_model("aten::eye", family="fill")
def eye(args: Arguments) -> Work:
    """(n) or (n, m): the whole matrix is written."""
    count, asked = _count(args)
    sizes = [args.integer(i) for i in range(count)]
    if not 1 <= count <= 2 or any(n is None or n < 0 for n in sizes):
        raise Unknown("no_values")
    rows, columns = sizes[0], sizes[-1]
    work = _new(product([rows or 0, columns or 0]), asked or FP32)
    return Work(0, work.reads, work.writes, work.dtype)
