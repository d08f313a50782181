"""The arguments of an op as a person writes them: a JSON list, one entry per argument."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rooflight import dtypes
from rooflight.cost import OpCall
from rooflight.errors import Refused

_TYPED = re.compile(r"(\w+)\[\s*((?:\d{1,19}(?:\s*,\s*\d{1,19})*)?)\s*\]")
#: Dims, type and concrete value of one argument, as the profiler and execution traces write them.
_Entry = tuple[Any, Any, str]


def call_of(op: str, text: str, dtype: str | None = None) -> OpCall:
    """The call of ``op`` with the arguments in ``text``; ``dtype`` is the type of tensors that name none.
    Raises Refused for what is no list of arguments."""
    kind = "" if dtype is None else _kind(dtype)
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as e:
        raise Refused(f"the arguments are not JSON ({e})", hint=_EXAMPLE) from None
    if not isinstance(values, list):
        raise Refused("the arguments are no list", hint=_EXAMPLE)
    entries = [_entry(value, kind, i) for i, value in enumerate(values, 1)]
    dims, types, concrete = zip(*entries, strict=True) if entries else ((), (), ())
    return OpCall(op, dims, types, (), concrete)


_EXAMPLE = "Expected such as [[64, 128], [128, 32]]"


def _entry(value: Any, kind: str, place: int) -> _Entry:
    if value is None:
        return [], "", ""
    if isinstance(value, bool | int | float):
        return [], "Scalar", str(value)
    if isinstance(value, str):
        typed = _TYPED.fullmatch(value)
        if typed is None:
            return [], "Scalar", value
        return [int(n) for n in typed[2].split(",") if n], _kind(typed[1]), ""
    if isinstance(value, list) and value and all(isinstance(v, list) for v in value):
        return value, [kind] * len(value) if kind else "TensorList", ""
    if isinstance(value, list) and all(type(v) is int for v in value):
        return value, kind, ""
    raise Refused(f"argument {place} is neither a tensor's dims nor a value", hint=_EXAMPLE)


def _kind(dtype: str) -> str:
    kind = dtypes.to_trace(dtype)
    if kind is None:
        raise Refused(f"no element type is called {dtype!r}", hint=f"Known: {', '.join(dtypes.BY_NAME)}")
    return kind
