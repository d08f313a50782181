"""Element types in the text of a name: C++ types of a demangled one, type codes of a mangled one."""

from __future__ import annotations

import re

from rooflight.kernels.mangled import tokens

# Longest first.  Unsigned types are indices and sizes far more often than data: they are passed over.
_TYPE = re.compile(
    r"c10::complex<(?P<complex>float|double)>"
    r"|OpaqueType<(?P<opaque>\d+)u?>"
    r"|(?<![A-Za-z0-9_])(?P<name>"
    r"__nv_bfloat16|__hip_bfloat16|hip_bfloat16|bfloat16_t|bfloat16|BFloat16|bhalf_t|nv_bfloat16|bf16_t|bf16"
    r"|__half|half_t|half|Half|_Float16|fp16_t|float16_t"
    r"|Float8_e4m3fnuz|Float8_e4m3fn|Float8_e5m2fnuz|Float8_e5m2|__nv_fp8_e4m3|__nv_fp8_e5m2|__hip_fp8_e4m3_fnuz"
    r"|__hip_fp8_e4m3|float_e4m3_t|float_e5m2_t"
    r"|f8_fnuz_t|f8_ocp_t|f8_t|bf8_fnuz_t|bf8_ocp_t|bf8_t|fp8_t|fp8e4m3|fp8e5m2|float8_e4m3_t"
    r"|tfloat32_t|float|double|int8_t|signed char|int32_t|int64_t|long long|long|int|short|bool"
    r"|unsigned char|unsigned short|unsigned long long|unsigned long|unsigned int|uint8_t)(?![A-Za-z0-9_])"
)

_DTYPES = {
    **dict.fromkeys(
        (
            "__nv_bfloat16",
            "__hip_bfloat16",
            "hip_bfloat16",
            "bfloat16_t",
            "bfloat16",
            "BFloat16",
            "bhalf_t",
            "nv_bfloat16",
            "bf16_t",
            "bf16",
        ),
        "bf16",
    ),
    **dict.fromkeys(("__half", "half_t", "half", "Half", "_Float16", "fp16_t", "float16_t"), "fp16"),
    **dict.fromkeys(
        (
            "Float8_e4m3fnuz",
            "Float8_e4m3fn",
            "Float8_e5m2fnuz",
            "Float8_e5m2",
            "__nv_fp8_e4m3",
            "__nv_fp8_e5m2",
            "__hip_fp8_e4m3_fnuz",
            "__hip_fp8_e4m3",
            "float_e4m3_t",
            "float_e5m2_t",
            # Composable Kernel's
            "f8_fnuz_t",
            "f8_ocp_t",
            "f8_t",
            "bf8_fnuz_t",
            "bf8_ocp_t",
            "bf8_t",
            "fp8_t",
            "fp8e4m3",
            "fp8e5m2",
            "float8_e4m3_t",
        ),
        "fp8",
    ),
    "tfloat32_t": "tf32",
    "float": "fp32",
    "double": "fp64",
    "int8_t": "int8",
    "signed char": "int8",
    "int32_t": "int32",
    "int": "int32",
    "int64_t": "int64",
    "long": "int64",
    "long long": "int64",
}
FLOATS = frozenset({"bf16", "fp16", "fp8", "tf32", "fp32", "fp64", "complex64", "complex128"})
_SIZES = {"2": "2-byte", "4": "4-byte"}
_INDEX_TYPES = ("unsigned int", "unsigned long", "unsigned long long")


def cpp_types(text: str) -> list[str]:
    """Element types in the order of the text; "" for one that is known and has no name here (bool,
    short, unsigned char, an opaque size other than 2 and 4)."""
    return [_dtype(m) for m in _TYPE.finditer(text) if m["name"] not in _INDEX_TYPES]


def _dtype(m: re.Match[str]) -> str:
    if m["complex"]:
        return "complex64" if m["complex"] == "float" else "complex128"
    if m["opaque"]:
        return _SIZES.get(m["opaque"], "")
    return _DTYPES.get(m["name"], "")


def first_float(types: list[str]) -> str | None:
    """The first floating type, integers being sizes and indices; an opaque type ends the search."""
    for t in types:
        if t in FLOATS or t.endswith("-byte"):
            return t
    return None


def first_element(types: list[str]) -> str | None:
    """The first type, whatever it is; a leading bool is a mask when another type follows."""
    rest = types[1:] if types[:1] == [""] and len(types) > 1 and types[1] in FLOATS else types
    return (rest[0] or None) if rest else None


# Itanium codes.  Composable Kernel's bhalf_t is unsigned short, "t"; its fp16 is _Float16, its fp8 and bf8
# are integers of eight bits, _BitInt(8) and unsigned _BitInt(8).
_CODES = {
    "DF16b": "bf16",
    "DF16_": "fp16",
    "Dh": "fp16",
    "f": "fp32",
    "d": "fp64",
    "DB8_": "fp8",
    "DU8_": "fp8",
}


def mangled_types(name: str) -> list[str]:
    """As :func:`cpp_types`, floating types only, of a mangled name."""
    codes = {**_CODES, "t": "bf16"} if name.startswith("_ZN2ck") else _CODES
    found = (codes.get(t.text) if t.kind == "type" else _DTYPES.get(t.text) for t in tokens(name))
    return [t for t in found if t in FLOATS]
