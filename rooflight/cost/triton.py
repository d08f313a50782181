"""Kernels that a compiler wrote, from what their launch shows: tensors and sizes, no roles.

FLOPs are unknown, whatever op names the kernel's name lists: a fused "addmm" is only its epilogue.
Bytes are inferred.

Not counted: FLOPs of any kind; what a kernel keeps in a workspace.

Source: a convention of our own, on the names and the order of arguments that torch's Inductor gives its
kernels.
"""

from __future__ import annotations

from functools import lru_cache

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Tensor, Unknown
from rooflight.cost.work import Work, pieces

_TWO_OPERANDS = frozenset(
    {"add", "sub", "mul", "div", "rsub", "maximum", "minimum", "backward", "where", "pow"}
)
_FILLS = frozenset({"zeros", "ones", "full", "fill", "zero", "new", "like", "empty"})


@lru_cache(maxsize=4096)
def fused_words(name: str) -> frozenset[str]:
    """The words of the fused op names: triton_poi_fused__unsafe_view_mul_2 gives unsafe, view, mul."""
    listed = name.split("_fused_", 1)[1] if "_fused_" in name else name
    return frozenset(w for w in listed.split("_") if w and not w.isdigit())


def _sizes(args: Arguments) -> list[int]:
    found = (args.integer(i) for i in range(len(args)) if args.kind(i) == "Scalar")
    return [n for n in found if n is not None]


@cost_model(family="triton_pointwise", prefixes=("triton_poi_",))
def pointwise(args: Arguments) -> Work:
    """The last tensor is the result, the others are read.  When it is not as large as the launch, or
    when a two-operand op has just two tensors, the first tensor of the launch's size is updated in
    place: all are read, that one is written."""
    tensors, sizes = args.all_tensors(), _sizes(args)
    if not tensors or not sizes:
        raise Unknown("no_shapes")
    words = fused_words(args.name)
    full = [t for t in tensors if t.numel == sizes[0]]
    result = tensors[-1]
    if len(tensors) == 1 and full and words <= _FILLS:
        return _work((), result)
    spare = result.numel == sizes[0] and len(tensors) > (2 if words & _TWO_OPERANDS else 1)
    if spare:
        return _work(tuple(tensors[:-1]), result)
    if not full:
        raise Unknown("roles_unknown")
    return _work(tuple(tensors), full[0])


@cost_model(family="triton_reduction", prefixes=("triton_red_", "triton_per_"))
def reduction(args: Arguments) -> Work:
    """The last tensor is the result, the others are read."""
    tensors = args.all_tensors()
    if len(tensors) < 2:
        raise Unknown("roles_unknown")
    return _work(tuple(tensors[:-1]), tensors[-1])


@cost_model(family="triton_template", matrix=True, prefixes=("triton_tem_",))
def template(args: Arguments) -> Work:
    """A matrix product or attention from a template; which, its launch does not show."""
    del args
    raise Unknown("roles_unknown")


@cost_model(family="triton_unknown", prefixes=("triton_",))
def other(args: Arguments) -> Work:
    """A hand-written kernel: nothing tells what its arguments are for."""
    del args
    raise Unknown("roles_unknown")


def _work(reads: tuple[Tensor, ...], result: Tensor) -> Work:
    return Work(None, pieces(reads), pieces(result.traffic), result.dtype, "fused")
