"""The element type of a result, by torch's promotion rules."""

from __future__ import annotations

from collections.abc import Iterable

from rooflight.cost.tensor import Tensor
from rooflight.dtypes import BY_NAME, DType

FP32, INT64, INT32, BOOL = (BY_NAME[n] for n in ("fp32", "int64", "int32", "bool"))
UINT8, BF16, FP16 = (BY_NAME[n] for n in ("uint8", "bf16", "fp16"))
_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}
# Types that a Python number is recorded as; on its own it takes part with its kind, not its width.
_PYTHON_NUMBERS = ("fp64", "int64", "bool", "complex128")
_COMPLEX_OF = {"fp16": "complex32", "bf16": "complex64", "fp32": "complex64", "fp64": "complex128"}


class Number(Tensor, frozen=True, gc=False):
    """A Python number that was recorded like a tensor: it counts for the type and is not read."""


def as_number(x: Tensor) -> Tensor:
    """``x`` as a :class:`Number` when it looks like one: no dims, and fp64, int64 or complex128.  A tensor of
    one such element looks the same; beside other operands it is far the rarer of the two."""
    if x.dims or x.dtype is None or x.dtype.name not in ("fp64", "int64", "complex128"):
        return x
    return Number((), x.dtype)


def promote(a: DType, b: DType) -> DType:
    """The type that holds both: the higher kind wins, then the wider; fp16 with bf16 gives fp32."""
    if a.name == b.name:
        return a
    if _RANK[a.kind] != _RANK[b.kind]:
        high, low = (a, b) if _RANK[a.kind] > _RANK[b.kind] else (b, a)
        return BY_NAME["complex128"] if high.is_complex and low.name == "fp64" else high
    if a.kind == "int":
        return _wider_int(a, b)
    if a.size == b.size:
        return FP32
    return a if a.size > b.size else b


def _wider_int(a: DType, b: DType) -> DType:
    signed = [d for d in (a, b) if not d.name.startswith("u")]
    if len(signed) == 1 and signed[0].size <= max(a.size, b.size):
        # A signed type that holds the unsigned one: uint8 with int8 gives int16.
        unsigned = a if signed[0] is b else b
        if signed[0].size <= unsigned.size:
            return BY_NAME.get(f"int{16 * unsigned.size}", INT64)
        return signed[0]
    return a if a.size >= b.size else b


def result_type(operands: Iterable[Tensor], scalars: Iterable[str | None] = ()) -> DType | None:
    """The result of an elementwise op; None when an operand's type is not recorded.

    Tensors with dims decide; one without dims, or a plain number, counts only when it is of a higher
    kind, and a Python number then as the default type of its kind (x * 2.0 is recorded as a "double"
    without dims, and leaves bf16 as it is).  ``scalars`` are concrete values as text: "2", "0.5", "True".
    """
    sized: DType | None = None
    single: DType | None = None
    number: DType | None = None
    for t in operands:
        if t.dtype is None:
            return None
        if t.dims:
            sized = t.dtype if sized is None else promote(sized, t.dtype)
        elif isinstance(t, Number):
            number = _default(t.dtype)
        else:
            single = t.dtype if single is None else _singles(single, t.dtype)
    result = _with_lower(sized, _default(single) if sized else single)
    result = _with_lower(result, number)
    for text in scalars:
        if text is not None:
            result = _of_scalar(text) if result is None else _with_scalar(result, text)
    return result


def as_float(dtype: DType | None) -> DType | None:
    """What a function such as sigmoid returns: integers become fp32."""
    return dtype if dtype is None or _RANK[dtype.kind] >= _RANK["float"] else FP32


def accumulated(dtype: DType | None) -> DType | None:
    """What sums return: bool and small integers become int64."""
    return INT64 if dtype is not None and dtype.kind in ("bool", "int") else dtype


def statistics(dtype: DType | None) -> DType | None:
    """What mean and deviation are kept in: fp32, and fp64 for fp64."""
    return dtype if dtype is None or dtype.name == "fp64" else FP32


def _singles(a: DType, b: DType) -> DType:
    if a.kind == b.kind and a.name != b.name:
        plain = [d for d in (a, b) if d.name not in _PYTHON_NUMBERS]
        if len(plain) == 1:
            return plain[0]
    return promote(a, b)


def _with_lower(higher: DType | None, lower: DType | None) -> DType | None:
    """``higher`` unless ``lower`` is of a higher kind; complex numbers keep the width of ``higher``."""
    if higher is None or lower is None:
        return higher or lower
    if _RANK[lower.kind] <= _RANK[higher.kind]:
        return higher
    return complex_type(higher) if lower.is_complex and higher.is_float else lower


def _default(dtype: DType | None) -> DType | None:
    """The default type of a Python number's kind, for a type that such numbers are recorded as."""
    name = {"fp64": "fp32", "complex128": "complex64"}.get(dtype.name) if dtype else None
    return BY_NAME[name] if name else dtype


def complex_type(dtype: DType) -> DType:
    """The complex type whose parts are of ``dtype``; of narrower floats complex64."""
    return BY_NAME[_COMPLEX_OF.get(dtype.name, "complex64")]


def real_part(dtype: DType) -> DType:
    """The type of the real part of a complex number, any other type as it is."""
    return BY_NAME[
        {"complex32": "fp16", "complex64": "fp32", "complex128": "fp64"}.get(dtype.name, dtype.name)
    ]


def _of_scalar(text: str) -> DType:
    # Fractions are written 0.5, 1e-5, inf or nan; complex numbers 0.+1.j.
    if text in ("True", "False"):
        return BOOL
    if text.endswith("j"):
        return BY_NAME["complex64"]
    return FP32 if any(c in text for c in ".en") else INT64


def _with_scalar(result: DType, text: str) -> DType:
    if text in ("True", "False"):
        return result
    return _with_lower(result, _of_scalar(text)) or result
