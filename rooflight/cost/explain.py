"""The derivation of a cost: the formula run once more, over arguments that remember their names.

Formulas know nothing of it.  Dims and whole values come as numbers that remember
(:mod:`rooflight.cost.derivation`), tensors and their pieces with the argument that they belong to.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from inspect import cleandoc

from rooflight.cost.arguments import Arguments
from rooflight.cost.derivation import named, remembering, unnamed
from rooflight.cost.estimate import estimate, is_empty, model_of, worked
from rooflight.cost.model import Cost, OpCall
from rooflight.cost.registry import CostModel
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work
from rooflight.dtypes import DType

_LONG_LIST = 64  # tensors; of longer ones only the sum is told
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NOT_COUNTED, SOURCE = "Not counted:", "Source:"


class NamedPiece(Piece, frozen=True, gc=False):
    """A piece of traffic of ``tensor``: all of it (``whole``), or a result of its dims."""

    tensor: NamedTensor
    whole: bool


class NamedTensor(Tensor, frozen=True, gc=False):
    """A tensor with its ``name``; ``argument`` is the one that it was given as or in a list of."""

    name: str = ""
    argument: str = ""

    @property
    def numel(self) -> int:
        return unnamed(product(self.dims))

    @property
    def traffic(self) -> Piece:
        # In the order of its dims, where it holds as much as they say.
        unique, numel = self.unique, self.numel
        return NamedPiece(numel if unique == numel else unique, self.dtype, self, whole=True)

    def like(self, dtype: DType | None = None) -> Piece:
        return NamedPiece(self.numel, dtype or self.dtype, self, whole=False)


class NamedArguments(Arguments):
    """Arguments whose sizes remember where they are from.  An argument is called as the model calls it,
    else by the letter of its place."""

    __slots__ = ("_params",)

    def __init__(self, call: OpCall, params: tuple[str, ...] = ()) -> None:
        super().__init__(call)
        self._params = params

    def label(self, i: int) -> str:
        """What the argument at ``i`` is called."""
        if i < len(self._params):
            return self._params[i]
        return _LETTERS[i] if i < len(_LETTERS) and not self._params else f"argument {i + 1}"

    def maybe(self, i: int) -> Tensor | None:
        found = super().maybe(i)
        return None if found is None else _named(found, self.label(i), self.label(i))

    def tensors(self, i: int) -> list[Tensor]:
        label, found = self.label(i), super().tensors(i)
        if len(found) > _LONG_LIST:
            return [NamedTensor(t.dims, t.dtype, t.strides, "one of many", label) for t in found]
        return [_named(t, f"{label}.{n}", label) for n, t in enumerate(found, 1)]

    def results(self) -> list[Tensor]:
        return [_named(t, f"result {n}", "result") for n, t in enumerate(super().results(), 1)]

    def integer(self, i: int) -> int | None:
        value = super().integer(i)
        return None if value is None else named(value, self.label(i))

    def ints(self, i: int) -> tuple[int, ...] | None:
        values = super().ints(i)
        return None if values is None else tuple(_entries(values, self.label(i)))


def _named(t: Tensor, name: str, argument: str) -> NamedTensor:
    return NamedTensor(tuple(_entries(t.dims, name)), t.dtype, t.strides, name, argument)


def _entries(values: tuple[int, ...], name: str) -> list[int]:
    return [named(n, f"{name}[{i}]") for i, n in enumerate(values)]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A cost with what it was made of.  ``work`` is None where the formula raised Unknown, whose reason
    the cost has; ``model`` is None for an op without a formula."""

    cost: Cost
    args: NamedArguments
    model: CostModel | None = None
    work: Work | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing runs, as all results are empty."""
        return self.work is not None and is_empty(self.work)

    @property
    def rule(self) -> str:
        """The formula in words."""
        return cleandoc(self.model.formula.__doc__ or "") if self.model else ""

    @property
    def not_counted(self) -> str:
        """What the whole family leaves out."""
        return paragraph(self.model, NOT_COUNTED) if self.model else ""

    @property
    def source(self) -> str:
        """Whose convention the family follows."""
        return paragraph(self.model, SOURCE) if self.model else ""


def explain(call: OpCall) -> Explanation:
    """The derivation of a call's cost; never raises, whatever was recorded."""
    cost, model = estimate(call), model_of(call)
    args = NamedArguments(call, model.params if model else ())
    work = None
    if model is not None:
        with remembering():
            try:
                work = worked(args, model)
            except Unknown:
                work = None
    return Explanation(cost, args, model, work)


def paragraph(model: CostModel, head: str) -> str:
    """The paragraph of the family's words that starts with ``head``, without it."""
    words = cleandoc(sys.modules[model.formula.__module__].__doc__ or "")
    found = (p for p in words.split("\n\n") if p.startswith(head))
    return " ".join(next(found, "").removeprefix(head).split())
