"""Elementwise ops.  FLOPs are a convention: 1 per element of the (broadcast) result, more where said.

Each operand is read once, unbroadcast; the result has the type that torch promotes to.

Not counted: that a division or an exponential takes more instructions than an addition; conversions of type
on the way.

Source: the FLOPs are a convention of our own; the type of the result follows torch's type promotion
(https://docs.pytorch.org/docs/stable/tensor_attributes.html, read 2026-12-02).
"""

from __future__ import annotations

from collections.abc import Sequence

from rooflight.cost.arguments import Arguments
from rooflight.cost.gemm import broadcast
from rooflight.cost.promotion import BOOL, Number, as_float, as_number, complex_type, real_part, result_type
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import DType

SAME, FLOAT, TRUTH = "same", "float", "truth"


def pointwise(
    operands: Sequence[Tensor],
    *,
    per_element: int = 1,
    result: str = SAME,
    scalars: Sequence[str | None] = (),
    in_place: bool = False,
    complex_cost: int | None = None,
) -> Work:
    """The work of one pass over ``operands``: ``result`` is SAME (promoted), FLOAT (integers become
    fp32) or TRUTH (bool).  ``complex_cost`` is the FLOPs per element of complex numbers; None means
    that no convention is known."""
    if not operands:
        raise Unknown("no_shapes")
    shape = operands[0].dims if in_place else broadcast(*(t.dims for t in operands))
    n = product(shape)
    math = result_type(operands, scalars)
    flops: int | None = per_element * n
    if math is not None and math.is_complex and per_element:
        flops = None if complex_cost is None else complex_cost * n
    reason = "" if flops is not None else "no_convention"
    out = Piece(n, operands[0].dtype if in_place else _result(math, result))
    return Work(flops, pieces(t for t in operands if not isinstance(t, Number)), pieces(out), math, reason)


def _result(math: DType | None, result: str) -> DType | None:
    if math is None or result == SAME:
        return math
    return as_float(math) if result == FLOAT else BOOL


def _operands(args: Arguments, *where: int) -> list[Tensor]:
    return [t for t in map(args.maybe, where) if t is not None]


def _two(args: Arguments) -> list[Tensor]:
    """The operands of a binary op.  A Python number as the second one is recorded like a tensor without
    dims, of the types that such numbers have; it comes with the launch and is not read from memory."""
    operands = _operands(args, 0, 1)
    if len(operands) < 2 or operands[0] == operands[1]:
        return operands
    return [operands[0], as_number(operands[1])]


def _scalars(args: Arguments, *where: int) -> list[str | None]:
    return [args.text(i) for i in where if args.kind(i) == "Scalar"]


def both(*names: str) -> tuple[str, ...]:
    """Each op and its in-place twin."""
    return tuple(f"aten::{n}{end}" for n in names for end in ("", "_"))


def _in_place(args: Arguments) -> bool:
    return args.name.split(".", 1)[0].endswith("_")


@cost_model(*both("add", "sub", "subtract", "rsub"), family="elementwise", at_most=4)
def add(args: Arguments) -> Work:
    """a + alpha*b: 1 FLOP per element, 2 when alpha is not 1; complex numbers 2."""
    twice = args.number(2) not in (None, 1.0)
    operands, scalars = _two(args), _scalars(args, 1)
    return pointwise(
        operands,
        per_element=1 + twice,
        scalars=scalars,
        in_place=_in_place(args),
        complex_cost=8 if twice else 2,
    )


@cost_model(*both("mul", "multiply"), family="elementwise", at_most=3)
def mul(args: Arguments) -> Work:
    """a * b: 1 FLOP per element; complex numbers 6 (4 products, 2 sums)."""
    operands, scalars = _two(args), _scalars(args, 1)
    return pointwise(operands, scalars=scalars, in_place=_in_place(args), complex_cost=6)


@cost_model(*both("div", "divide", "true_divide"), family="elementwise", at_most=4)
def div(args: Arguments) -> Work:
    """a / b: 1 FLOP per element; integers divide into fp32 unless a rounding mode is given (a third
    argument; recorders drop the word itself)."""
    whole = len(args) > 2 and args.maybe(2) is None
    operands, scalars = _two(args), _scalars(args, 1)
    return pointwise(operands, result=SAME if whole else FLOAT, scalars=scalars, in_place=_in_place(args))


@cost_model(
    *both("pow", "floor_divide", "remainder", "fmod", "hypot", "nextafter"),
    *both("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"),
    *both("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__", "gcd", "lcm"),
    "aten::maximum",
    "aten::minimum",
    "aten::fmax",
    "aten::fmin",
    "aten::heaviside",
    "aten::prelu",
    "aten::_prelu_kernel",
    family="elementwise",
    at_most=3,
)
def binary(args: Arguments) -> Work:
    """1 FLOP per element of two broadcast operands, one of which may be a number."""
    return pointwise(_two(args), scalars=_scalars(args, 0, 1), in_place=_in_place(args))


@cost_model(
    *both("atan2", "arctan2", "copysign", "xlogy", "igamma", "igammac", "ldexp"),
    "aten::logaddexp",
    "aten::logaddexp2",
    "aten::special_xlog1py",
    "aten::special_zeta",
    family="elementwise",
    at_most=3,
)
def float_binary(args: Arguments) -> Work:
    """As the other binary ops; integers become fp32."""
    operands, scalars = _two(args), _scalars(args, 0, 1)
    return pointwise(operands, result=FLOAT, scalars=scalars, in_place=_in_place(args))


@cost_model(
    *both("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "not_equal"),
    *both("less", "less_equal", "greater", "greater_equal"),
    family="elementwise",
    at_most=3,
)
def comparison(args: Arguments) -> Work:
    """1 FLOP per element; the result is bool, one byte each."""
    return pointwise(_two(args), result=TRUTH, in_place=_in_place(args), complex_cost=1)


@cost_model(
    *both("logical_not"),
    "aten::isnan",
    "aten::isinf",
    "aten::isfinite",
    "aten::isposinf",
    "aten::isneginf",
    "aten::signbit",
    family="elementwise",
    at_most=2,
)
def question(args: Arguments) -> Work:
    """1 FLOP per element of the one operand; the result is bool.  A further tensor is where it goes."""
    return pointwise(_operands(args, 0), result=TRUTH, in_place=_in_place(args), complex_cost=1)


@cost_model(
    *both("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"),
    *both("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *both("sigmoid", "erf", "erfc", "erfinv", "lgamma", "digamma", "sinc", "logit", "deg2rad", "rad2deg"),
    *both("i0"),
    *(f"aten::special_{n}" for n in ("i0e", "i1", "i1e", "erfcx", "log_ndtr", "ndtri", "entr")),
    "aten::log_sigmoid",
    "aten::log_sigmoid_forward",
    family="elementwise",
    at_most=3,
)
def float_unary(args: Arguments) -> Work:
    """1 FLOP per element; integers become fp32."""
    return pointwise(_operands(args, 0), result=FLOAT, in_place=_in_place(args))


@cost_model(
    *both("neg", "negative", "sign", "ceil", "floor", "round", "trunc", "frac", "square"),
    *both("relu", "relu6", "silu", "elu", "celu", "selu", "leaky_relu", "hardtanh", "hardswish"),
    *both("hardsigmoid", "mish", "threshold", "nan_to_num", "bitwise_not", "rrelu", "sgn", "conj_physical"),
    "aten::gelu",
    "aten::gelu_",
    "aten::softplus",
    "aten::softshrink",
    "aten::hardshrink",
    "aten::positive",
    "aten::_conj_physical",
    family="elementwise",
    at_most=6,
)
def unary(args: Arguments) -> Work:
    """1 FLOP per element; the result has the operand's type."""
    return pointwise(_operands(args, 0), in_place=_in_place(args))


@cost_model(*both("abs", "absolute"), "aten::angle", family="elementwise", at_most=2)
def absolute(args: Arguments) -> Work:
    """1 FLOP per element; the size of complex numbers is real (no convention for its FLOPs), the angle of
    integers fp32."""
    x = args.tensor(0)
    if x.dtype is None or not x.dtype.is_complex:
        return pointwise([x], result=FLOAT if "angle" in args.name else SAME, in_place=_in_place(args))
    return Work(None, pieces(x), pieces(x.like(real_part(x.dtype))), x.dtype, "no_convention")


@cost_model(*both("clamp", "clip"), family="elementwise", at_most=4)
def clamp(args: Arguments) -> Work:
    """1 FLOP per element; the limits are numbers or tensors."""
    operands, scalars = _operands(args, 0, 1, 2), _scalars(args, 1, 2)
    return pointwise(operands, scalars=scalars, in_place=_in_place(args))


@cost_model(*both("clamp_min", "clamp_max"), family="elementwise", at_most=3)
def clamp_one_side(args: Arguments) -> Work:
    """As clamp, with one limit; a further tensor is where the result goes."""
    return pointwise(_operands(args, 0, 1), scalars=_scalars(args, 1), in_place=_in_place(args))


@cost_model(*both("addcmul", "addcdiv"), family="elementwise", at_most=5)
def addcmul(args: Arguments) -> Work:
    """a + value*b*c (or b/c): 2 FLOPs per element."""
    return pointwise(_operands(args, 0, 1, 2), per_element=2, in_place=_in_place(args))


@cost_model(*both("lerp"), family="elementwise", at_most=4)
def lerp(args: Arguments) -> Work:
    """a + w*(b - a): 3 FLOPs per element."""
    return pointwise(_operands(args, 0, 1, 2), per_element=3, in_place=_in_place(args))


@cost_model(
    "aten::gelu_backward",
    "aten::silu_backward",
    "aten::sigmoid_backward",
    "aten::tanh_backward",
    "aten::threshold_backward",
    "aten::leaky_relu_backward",
    "aten::hardtanh_backward",
    "aten::hardswish_backward",
    "aten::hardsigmoid_backward",
    "aten::mish_backward",
    "aten::softplus_backward",
    "aten::logit_backward",
    "aten::log_sigmoid_backward",
    "aten::hardshrink_backward",
    "aten::softshrink_backward",
    "aten::infinitely_differentiable_gelu_backward",
    family="elementwise",
    at_most=5,
)
def activation_backward(args: Arguments) -> Work:
    """1 FLOP per element; reads the gradient and what was saved (input or output)."""
    return pointwise(_operands(args, 0, 1))


@cost_model("aten::elu_backward", family="elementwise", at_most=7)
def elu_backward(args: Arguments) -> Work:
    """As the other activations; the saved tensor is the sixth argument."""
    return pointwise(_operands(args, 0, 5))


@cost_model("aten::_prelu_kernel_backward", family="elementwise", at_most=5)
def prelu_backward(args: Arguments) -> Work:
    """(dy, x, weight): reads all three, writes the gradients of x and, not yet summed, of the weight.  Its
    FLOPs have no convention."""
    grad, x, weight = (args.tensor(i) for i in range(3))
    return Work(None, pieces(grad, x, weight), pieces(x.like(), x.like()), x.dtype, "no_convention")


@cost_model("aten::polygamma", family="elementwise", at_most=3)
def polygamma(args: Arguments) -> Work:
    """(n, x): 1 FLOP per element; integers become fp32."""
    return pointwise(_operands(args, 1), result=FLOAT)


@cost_model("aten::complex", "aten::polar", family="elementwise", at_most=3)
def complex_of_parts(args: Arguments) -> Work:
    """Complex numbers from real and imaginary parts: 0 FLOPs; from sizes and angles no convention."""
    a, b = args.tensor(0), args.tensor(1)
    n = product(broadcast(a.dims, b.dims))
    parts = result_type([a, b])
    polar = args.name.endswith("polar")
    made = complex_type(parts) if parts is not None and parts.is_float else None
    return Work(
        None if polar else 0, pieces(a, b), pieces(Piece(n, made)), made, "no_convention" if polar else ""
    )


@cost_model("aten::linalg_cross", family="elementwise", at_most=4)
def cross(args: Arguments) -> Work:
    """Vectors of three at right angles to those of both operands; its FLOPs have no convention."""
    work = pointwise(_operands(args, 0, 1))
    return Work(None, work.reads, work.writes, work.dtype, "no_convention")


@cost_model("aten::glu", family="elementwise", at_most=3)
def glu(args: Arguments) -> Work:
    """Halves along a dim, sigmoid(b) * a: 2 FLOPs per element of the result, half the input."""
    x = args.tensor(0)
    return Work(2 * (x.numel // 2), pieces(x), pieces(Piece(x.numel // 2, x.dtype)), x.dtype)


@cost_model("aten::glu_backward", family="elementwise")
def glu_backward(args: Arguments) -> Work:
    """Reads the gradient and the input, writes a gradient as large as the input; its FLOPs have no
    convention."""
    grad, x = args.tensor(0), args.tensor(1)
    return Work(None, pieces(grad, x), pieces(x.like()), x.dtype, "no_convention")


@cost_model(
    "_C::silu_and_mul",
    "_C::gelu_and_mul",
    "_C::gelu_tanh_and_mul",
    "_C::mul_and_silu",
    "_C::fatrelu_and_mul",
    "_C::swigluoai_and_mul",
    "sgl_kernel::silu_and_mul",
    "sgl_kernel::gelu_and_mul",
    "sgl_kernel::gelu_tanh_and_mul",
    "flashinfer::silu_and_mul",
    "aiter::silu_and_mul",
    family="elementwise",
)
def act_and_mul(args: Arguments) -> Work:
    """Activation of one half times the other, of serving engines: (result, x), 2 FLOPs per element."""
    out, x = args.tensor(0), args.tensor(1)
    return Work(2 * out.numel, pieces(x), pieces(out.like()), x.dtype)


@cost_model("_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick", family="elementwise", params="result x")
def act_into(args: Arguments) -> Work:
    """An activation, of serving engines: (result, x), 1 FLOP per element."""
    out, x = args.tensor(0), args.tensor(1)
    return Work(out.numel, pieces(x), pieces(out.like()), x.dtype)


@cost_model(*both("where"), family="elementwise", at_most=4)
def where(args: Arguments) -> Work:
    """A choice, not arithmetic: 0 FLOPs.  Reads the condition (1 byte each) and both sides."""
    if len(args) < 3:
        raise Unknown("data_dependent")
    cond, sides = args.tensor(0), _operands(args, 1, 2)
    n = product(broadcast(cond.dims, *(t.dims for t in sides)))
    dtype = result_type(sides, _scalars(args, 1, 2))
    return Work(0, pieces(cond, sides), pieces(Piece(n, dtype)), dtype)


@cost_model(*both("masked_fill"), family="elementwise", at_most=4)
def masked_fill(args: Arguments) -> Work:
    """0 FLOPs; reads the tensor and the mask, writes the result."""
    x, mask = args.tensor(0), args.tensor(1)
    n = product(broadcast(x.dims, mask.dims))
    return Work(0, pieces(x, mask, args.maybe(2)), pieces(Piece(n, x.dtype)), x.dtype)
