"""The arguments of a recorded op, read with suspicion.

Everything here comes from a file of somebody else: entries may be missing, nested, negative or text.
What cannot be read is absent; a formula that needs it raises Unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rooflight import dtypes
from rooflight.cost.derivation import named
from rooflight.cost.model import OpCall
from rooflight.cost.tensor import INT64_MAX, MAX_RANK, Tensor, Unknown, product
from rooflight.dtypes import DType

# What stands in the type column for things that are no tensor.
_NOT_A_TENSOR = frozenset({"", "Scalar", "ScalarList", "TensorList", "GenericList"})
# How recordings of 2021 call a scalar.
_SCALARS = dict.fromkeys(("Int", "Double", "Bool", "ComplexDouble"), "Scalar")
# What kernel names tell of copies, which do not care for the kind.
_WIDTHS = {f"{n}-byte": DType(f"{n}-byte", n, "int") for n in (1, 2, 4, 8, 16)}
_MAX_TEXT = 4096  # a recorded list of ints is far shorter
_INTS = re.compile(r"\[\s*(-?\d{1,19}(\s*,\s*-?\d{1,19})*)?\s*\]")
_INTEGER = re.compile(r"-?\d{1,19}")
_ABSENT = object()
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")


class Arguments:
    """Access by position.  ``tensor`` and the plural forms raise Unknown where nothing usable is
    recorded; ``maybe`` and the concrete values give None."""

    __slots__ = ("_concrete", "_dims", "_strides", "_types", "call")

    def __init__(self, call: OpCall) -> None:
        self.call = call
        self._dims = _sequence(call.dims)
        self._types = _sequence(call.types)
        self._strides = _sequence(call.strides)
        self._concrete = _sequence(call.concrete)

    def __len__(self) -> int:
        return len(self._dims)

    @property
    def name(self) -> str:
        return self.call.op

    @property
    def has_types(self) -> bool:
        """False for recordings of 2021 and before, which hold dims alone."""
        return bool(self._types)

    @property
    def has_values(self) -> bool:
        """Whether Concrete Inputs were recorded."""
        return bool(self._concrete)

    def kind(self, i: int) -> str:
        """The type column at ``i``: a C++ element type, Scalar, ScalarList, TensorList or ""."""
        kind = self._types[i] if 0 <= i < len(self._types) else ""
        if isinstance(kind, str):
            return _SCALARS.get(kind, kind)
        return "TensorList" if isinstance(kind, list) else ""

    def tensor(self, i: int) -> Tensor:
        """The tensor at ``i``; Unknown (``no_shapes``) when there is none."""
        found = self.maybe(i)
        if found is None:
            raise Unknown("no_shapes")
        return found

    def maybe(self, i: int) -> Tensor | None:
        """The tensor at ``i``, or None: not given, a scalar, a list."""
        if not 0 <= i < len(self._dims):
            return None
        raw, kind = self._dims[i], self.kind(i)
        empty = isinstance(raw, list | tuple) and not raw
        if empty and (kind in _NOT_A_TENSOR or not self._types):
            return None
        if _is_nested(raw) or kind in ("Scalar", "ScalarList", "TensorList", "GenericList"):
            return None
        dims = _shape(raw)
        return Tensor(dims, dtypes.from_trace(kind), _steps(self._stride(i), len(dims)))

    def tensors(self, i: int) -> list[Tensor]:
        """The tensors of a list argument.  Their element types are recorded by an execution trace only."""
        raw = self._dims[i] if 0 <= i < len(self._dims) else ()
        if not _is_nested(raw):
            raise Unknown("no_shapes")
        steps = self._stride(i)
        known = steps if isinstance(steps, list | tuple) and len(steps) == len(raw) else [None] * len(raw)
        rows = zip([_shape(dims) for dims in raw], self._list_types(i, len(raw)), known, strict=True)
        return [Tensor(d, kind, _steps(s, len(d))) for d, kind, s in rows if kind is not _ABSENT]

    def _list_types(self, i: int, n: int) -> list[Any]:
        """The element type of each tensor in a list of ``n``; an optional one may be absent."""
        kinds = self._types[i] if i < len(self._types) else ()
        if not isinstance(kinds, list) or len(kinds) != n:
            return [self.list_type] * n
        texts = [kind if isinstance(kind, str) else "?" for kind in kinds]
        return [dtypes.from_trace(text) if text else _ABSENT for text in texts]

    def results(self) -> list[Tensor]:
        """The tensors that came out, as an execution trace tells; none when it does not."""
        found = []
        for row in self.call.results:
            dims, kind = row if isinstance(row, list | tuple) and len(row) == 2 else ((), None)
            if not isinstance(kind, str):
                raise Unknown("bad_shapes")
            found.append(Tensor(_shape(dims), dtypes.from_trace(kind)))
        return found

    @property
    def list_type(self) -> DType | None:
        """The element type of lists, where the caller knows it."""
        return _WIDTHS.get(self.call.list_type) or dtypes.BY_NAME.get(self.call.list_type)

    def all_tensors(self) -> list[Tensor]:
        """Every tensor argument, in order."""
        return [t for t in map(self.maybe, range(len(self._dims))) if t is not None]

    def text(self, i: int) -> str | None:
        """The concrete value at ``i`` as recorded; None when absent, empty or overlong."""
        value = self._concrete[i] if 0 <= i < len(self._concrete) else None
        text = value if isinstance(value, str) else _as_text(value)
        return text if text and len(text) <= _MAX_TEXT else None

    def flag(self, i: int) -> bool | None:
        """True or False; the recorder writes the words, so that bool("False") would be a trap."""
        return {"True": True, "False": False}.get(self.text(i) or "")

    def number(self, i: int) -> float | None:
        """A finite scalar."""
        text = self.text(i)
        return float(text) if text and len(text) < 64 and _NUMBER.fullmatch(text) else None

    def integer(self, i: int) -> int | None:
        """A whole scalar within int64."""
        text = self.text(i)
        return int(text) if text and _INTEGER.fullmatch(text) else None

    def ints(self, i: int) -> tuple[int, ...] | None:
        """A list of ints such as "[1, 1]"; a lone int is a list of one."""
        text = self.text(i)
        if text is None:
            return None
        if _INTS.fullmatch(text):
            values = tuple(int(v) for v in re.findall(r"-?\d+", text))
            return values if len(values) <= MAX_RANK else None
        whole = self.integer(i)
        return None if whole is None else (whole,)

    def sizes(self, i: int) -> tuple[int, ...]:
        """As :meth:`ints`, for what must be a shape."""
        values = self.ints(i)
        if values is None or any(not 0 <= v <= INT64_MAX for v in values):
            raise Unknown("no_shapes")
        product([v for v in values if v])
        return values

    def flags(self, i: int) -> tuple[bool, ...] | None:
        """A mask such as "[True, True, False]"."""
        text = self.text(i)
        if text is None or not re.fullmatch(r"\[\s*((True|False)(\s*,\s*(True|False)){0,15})?\s*\]", text):
            return None
        return tuple(word == "True" for word in re.findall(r"True|False", text))

    def dtype_code(self, i: int) -> DType | None:
        """The type that a dtype argument asks for."""
        code = self.integer(i)
        return None if code is None else dtypes.from_code(code)

    def _stride(self, i: int) -> Any:
        return self._strides[i] if i < len(self._strides) else None


def _as_text(value: object) -> str | None:
    """A concrete value that was not recorded as text, as it would have been."""
    if isinstance(value, list | tuple):
        plain = len(value) <= MAX_RANK and all(_is_small(v) for v in value)
        return str(list(value)) if plain else None
    return str(value) if isinstance(value, float) or _is_small(value) else None


def _is_small(value: object) -> bool:
    return isinstance(value, int) and -INT64_MAX <= value <= INT64_MAX


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _is_nested(raw: Any) -> bool:
    if not raw or not isinstance(raw, list | tuple) or not isinstance(raw[0], list | tuple):
        return False
    return all(isinstance(r, list | tuple) for r in raw)


def _shape(raw: Any) -> tuple[int, ...]:
    if not isinstance(raw, list | tuple) or len(raw) > MAX_RANK:
        raise Unknown("bad_shapes")
    # A loop takes half the time of a generator, and is made for every tensor of a recording.
    for n in raw:
        if type(n) is not int or not 0 <= n <= INT64_MAX:
            raise Unknown("bad_shapes")
    product([n for n in raw if n])
    return tuple(raw)


def _steps(raw: Any, rank: int) -> tuple[int, ...] | None:
    if not isinstance(raw, list | tuple) or len(raw) != rank:
        return None
    for s in raw:
        if type(s) is not int or not -INT64_MAX <= s <= INT64_MAX:
            return None
    return tuple(raw)


def whole_number(args: Mapping[str, Any], *keys: str) -> int | None:
    """The first of ``keys`` that holds a count: an int, or its decimal text."""
    for key in keys:
        value = args.get(key) if isinstance(args, Mapping) else None
        if isinstance(value, str) and re.fullmatch(r"\d{1,19}", value):
            value = int(value)
        if type(value) is int and 0 <= value <= INT64_MAX:
            return named(value, key)
    return None
