"""Element types: one name, one size, whoever wrote it down.

Names are ours (``fp16``, ``bf16``, ``fp8``, ...); :func:`from_trace` reads the names that the torch
profiler writes, :func:`from_code` the integer codes that dtype arguments are recorded as
(``c10::ScalarType``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: ``size`` in bytes; ``kind`` is float, int, bool or complex."""

    name: str
    size: int
    kind: str

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"


_ALL = (
    DType("fp64", 8, "float"),
    DType("fp32", 4, "float"),
    DType("fp16", 2, "float"),
    DType("bf16", 2, "float"),
    DType("fp8", 1, "float"),
    DType("fp8_e5m2", 1, "float"),
    DType("fp8_scale", 1, "float"),
    DType("fp4", 1, "float"),  # float4_e2m1fn_x2: one byte holds two values
    DType("int64", 8, "int"),
    DType("int32", 4, "int"),
    DType("int16", 2, "int"),
    DType("int8", 1, "int"),
    DType("uint64", 8, "int"),
    DType("uint32", 4, "int"),
    DType("uint16", 2, "int"),
    DType("uint8", 1, "int"),
    DType("bool", 1, "bool"),
    DType("complex32", 4, "complex"),
    DType("complex64", 8, "complex"),
    DType("complex128", 16, "complex"),
)
BY_NAME = {d.name: d for d in _ALL}

# Names as the profiler writes them.  Clang builds say "long" where GCC builds say "long int".
_TRACE_NAMES = {
    "double": "fp64",
    "float": "fp32",
    "c10::Half": "fp16",
    "at::Half": "fp16",
    "c10::BFloat16": "bf16",
    "at::BFloat16": "bf16",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
    "c10::Float8_e5m2": "fp8_e5m2",
    "c10::Float8_e5m2fnuz": "fp8_e5m2",
    "c10::Float8_e8m0fnu": "fp8_scale",
    "c10::Float4_e2m1fn_x2": "fp4",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "int": "int32",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "short unsigned int": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "long unsigned int": "uint64",
    "bool": "bool",
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::quint8": "uint8",
    "c10::qint8": "int8",
    "c10::qint32": "int32",
}

# c10::ScalarType, as dtype arguments are recorded in Concrete Inputs.
_CODES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "fp16",
    6: "fp32",
    7: "fp64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bf16",
    23: "fp8_e5m2",
    24: "fp8",
    25: "fp8_e5m2",
    26: "fp8",
    27: "uint16",
    28: "uint32",
    29: "uint64",
    44: "fp8_scale",
    45: "fp4",
}


def from_trace(name: str) -> DType | None:
    """The type that the profiler calls ``name``, or ``None`` ("", "Scalar", "TensorList", ...)."""
    ours = _TRACE_NAMES.get(name)
    return BY_NAME[ours] if ours else None


def to_trace(name: str) -> str | None:
    """How the profiler writes the type that we call ``name``; None when there is none of that name."""
    return next((theirs for theirs, ours in _TRACE_NAMES.items() if ours == name), None)


def from_code(code: int) -> DType | None:
    """The type of a ``c10::ScalarType`` code, or ``None``."""
    ours = _CODES.get(code)
    return BY_NAME[ours] if ours else None
