"""Where the formulas sign in: one decorator, no central table.

A formula takes the :class:`Arguments` of a call and answers its :class:`Work`, or raises Unknown.
Its docstring becomes its section of the page of its family, docs/costs/.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from rooflight.cost.arguments import Arguments
from rooflight.cost.work import Work

Formula = Callable[[Arguments], Work]


@dataclass(frozen=True, slots=True)
class CostModel:
    """A formula with the ops it speaks for.

    ``family`` is the op family, in the vocabulary of the kernel names; ``matrix`` says that the
    matrix units are meant to do it.  ``params`` names the arguments by position, for callers that give
    them by name and for those who ask how a cost comes about.  ``at_most`` is the longest argument list
    that any overload has: some recorders of TorchScript wrote down the interpreter's whole stack, and
    its start is something else.
    """

    formula: Formula
    names: tuple[str, ...]
    family: str
    matrix: bool = False
    prefixes: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    at_most: int | None = None

    @property
    def doc(self) -> str:
        return (self.formula.__doc__ or "").strip()


_MODELS: list[CostModel] = []
_BY_NAME: dict[str, CostModel] = {}
_BY_PREFIX: dict[str, CostModel] = {}


def cost_model(
    *names: str,
    family: str,
    matrix: bool = False,
    prefixes: tuple[str, ...] = (),
    params: str = "",
    at_most: int | None = None,
) -> Callable[[Formula], Formula]:
    """Sign a formula in for the ops ``names`` and for every op that starts with one of ``prefixes``;
    ``params`` are the names of its arguments with blanks between them.

    Raises ValueError for a name that is taken, for one given twice and for a formula without words.
    """

    def sign_in(formula: Formula) -> Formula:
        model = CostModel(formula, names, family, matrix, prefixes, tuple(params.split()), at_most)
        if not model.doc:
            raise ValueError(f"the cost model of {names or prefixes} has no docstring")
        for table, keys in ((_BY_NAME, names), (_BY_PREFIX, prefixes)):
            for key in keys:
                if key in table:
                    raise ValueError(f"{key!r} has a cost model already: {table[key].formula.__qualname__}")
                table[key] = model
        _MODELS.append(model)
        find.cache_clear()
        return formula

    return sign_in


@lru_cache(maxsize=4096)
def find(op: str) -> CostModel | None:
    """The model of an op; "aten::add.Tensor" (with overload) finds that of "aten::add"."""
    found = _BY_NAME.get(op)
    if found is None and "::" in op:
        found = _BY_NAME.get(op.split(".", 1)[0])
    if found is None:
        prefix = max((p for p in _BY_PREFIX if op.startswith(p)), key=len, default=None)
        found = None if prefix is None else _BY_PREFIX[prefix]
    return found


def family_of(op: str) -> str | None:
    """The family of an op with a formula, ``None`` for any other."""
    model = find(op)
    return model.family if model else None


def models() -> tuple[CostModel, ...]:
    """All models, in the order they signed in."""
    return tuple(_MODELS)
