"""Optimizers and ops over lists of tensors.

The element type of a list is recorded by an execution trace only: without one FLOPs are known, bytes are
not (``dtype_unknown``) unless the kernel's name tells the type.

Not counted: what is computed once per step and not per parameter (corrections of the bias, powers of the
betas).

Source: a convention of our own: the additions, products, divisions and roots of each rule.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.promotion import result_type
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import DType


def _numel(tensors: list[Tensor]) -> int:
    return sum(t.numel for t in tensors)


def _lists(args: Arguments, *where: int) -> list[Tensor]:
    """Tensors of the list arguments that were given."""
    found: list[Tensor] = []
    for i in where:
        try:
            found += args.tensors(i)
        except Unknown as absent:
            if absent.reason != "no_shapes":
                raise
    return found


def _dense(tensors: list[Tensor]) -> tuple[Piece, ...]:
    return pieces(t.like() for t in tensors)


def _math(args: Arguments, tensors: list[Tensor]) -> DType | None:
    """The type of the arithmetic where it was recorded; a kernel's name tells no more than a width."""
    return result_type(tensors) if args.list_type is None else None


def foreach(*names: str) -> tuple[str, ...]:
    """The ops over lists, each with its in-place twin."""
    return tuple(f"aten::_foreach_{n}{end}" for n in names for end in ("", "_"))


def _each(args: Arguments, per_element: int, *more: int) -> Work:
    first = args.tensors(0)
    reads = pieces(first, _lists(args, *more))
    return Work(per_element * _numel(first), reads, _dense(first), _math(args, first))


@cost_model(*foreach("add", "sub"), family="optimizer")
def foreach_add(args: Arguments) -> Work:
    """a + alpha*b over lists: 1 FLOP per element, 2 when alpha is not 1."""
    with_list = args.kind(1) == "TensorList"
    return _each(args, 1 + (with_list and args.number(2) not in (None, 1.0)), 1)


@cost_model(
    *foreach(
        "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max", "sqrt", "rsqrt", "neg", "abs"
    ),
    *foreach("exp", "log", "reciprocal", "sign", "sigmoid", "tanh", "floor", "ceil", "round"),
    family="optimizer",
)
def foreach_one(args: Arguments) -> Work:
    """1 FLOP per element of the lists."""
    return _each(args, 1, 1)


@cost_model(*foreach("addcmul", "addcdiv"), family="optimizer")
def foreach_addc(args: Arguments) -> Work:
    """a + value*b*c (or b/c) over lists: 2 FLOPs per element."""
    return _each(args, 2, 1, 2)


@cost_model(*foreach("lerp"), family="optimizer")
def foreach_lerp(args: Arguments) -> Work:
    """a + w*(b - a) over lists: 3 FLOPs per element."""
    return _each(args, 3, 1, 2)


@cost_model("aten::_foreach_norm", family="optimizer")
def foreach_norm(args: Arguments) -> Work:
    """Norms of the tensors of a list: 2 FLOPs per element, one number out per tensor."""
    first = args.tensors(0)
    norms = pieces(Piece(1, t.dtype) for t in first)
    return Work(2 * _numel(first), pieces(first), norms, _math(args, first))


@cost_model("aten::_foreach_copy_", family="optimizer")
def foreach_copy_(args: Arguments) -> Work:
    """Copies between lists: 0 FLOPs.  The types may differ, and so the kernel's name does not tell both."""
    targets, sources = args.tensors(0), args.tensors(1)
    if args.list_type is not None:
        return Work(0, None, None, None, "dtype_unknown")
    return Work(0, pieces(sources), _dense(targets), _math(args, targets))


@cost_model("aten::_foreach_zero_", family="optimizer")
def foreach_zero_(args: Arguments) -> Work:
    """Zeroes the tensors of a list: 0 FLOPs, nothing read."""
    return Work(0, (), _dense(args.tensors(0)))


@cost_model(
    "aten::_fused_adam_", "aten::_fused_adam", "aten::_fused_adamw_", "aten::_fused_adamw", family="optimizer"
)
def adam(args: Arguments) -> Work:
    """Per parameter: Adam 13 FLOPs, 2 more for weight decay by L2, AdamW 1 more for its decay, amsgrad
    1 more.  Reads parameter, gradient, both moments (and the largest second one) and the step counts,
    writes them back without gradient and counts: 28 bytes per fp32 parameter."""
    params = args.tensors(0)
    decoupled = "adamw" in args.name
    amsgrad = args.flag(11) is True
    decay = args.number(9)
    per_param = 13 + amsgrad + (decoupled or (2 if decay else 0))
    state = _lists(args, 2, 3, *((4,) if amsgrad else ()))
    reads = pieces(params, _lists(args, 1), state, _lists(args, 5))
    return Work(per_param * _numel(params), reads, pieces(params, state), _math(args, params))


@cost_model("aten::_fused_sgd_", "aten::_fused_sgd", family="optimizer")
def sgd(args: Arguments) -> Work:
    """Per parameter 4 FLOPs with momentum, 2 without; 2 more for weight decay and for Nesterov."""
    params = args.tensors(0)
    momentum = _lists(args, 2)
    per_param = 4 if args.number(4) else 2
    per_param += 2 * bool(args.number(3)) + 2 * (args.flag(7) is True)
    return Work(
        per_param * _numel(params),
        pieces(params, _lists(args, 1), momentum),
        pieces(params, momentum),
        _math(args, params),
    )


@cost_model("aten::_fused_adagrad_", "aten::_fused_adagrad", family="optimizer")
def adagrad(args: Arguments) -> Work:
    """Reads and writes parameters and sums; its FLOPs have no convention."""
    params, sums = args.tensors(0), _lists(args, 2)
    return Work(None, pieces(params, _lists(args, 1), sums), pieces(params, sums), _math(args, params))


@cost_model("aten::_amp_foreach_non_finite_check_and_unscale_", family="optimizer")
def unscale(args: Arguments) -> Work:
    """Gradients times a scale, and whether all are finite: reads and writes the list; its FLOPs have no
    convention."""
    grads = args.tensors(0)
    if any(t.dtype is None for t in grads):
        raise Unknown("dtype_unknown")
    found, scale = args.maybe(1), args.maybe(2)
    return Work(None, pieces(grads, scale), pieces(_dense(grads), found), _math(args, grads), "no_convention")


@cost_model(
    "aten::flatten_dense_tensors",
    "aten::unflatten_dense_tensors",
    family="optimizer",
)
def over_lists(args: Arguments) -> Work:
    """A pass over a list of unrecorded type: neither FLOPs nor bytes are known."""
    args.tensors(0)
    raise Unknown("dtype_unknown")


@cost_model(
    "bitsandbytes::optimizer_update_32bit",
    "bitsandbytes::optimizer_update_8bit_blockwise",
    family="optimizer",
    params="optimizer_name g p state1 state2",
)
def bitsandbytes_update(args: Arguments) -> Work:
    """(name, gradient, parameter, one or two states): reads all, writes all but the gradient.  Which
    optimizer it is, and so its FLOPs, is text that no recording holds; tables and scales of states are not
    counted."""
    g, p, states = args.tensor(1), args.tensor(2), [args.tensor(3), args.maybe(4)]
    return Work(None, pieces(g, p, states), pieces(p, states), p.dtype, "no_convention")
