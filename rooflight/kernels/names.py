"""From a kernel's name to what it tells: family, types, unit, collective, a short form."""

from __future__ import annotations

import re
from functools import lru_cache

from rooflight.kernels import elements, matrix
from rooflight.kernels.communication import collective_kind, is_communication, nccl_dtype
from rooflight.kernels.families import FAMILIES, MATRIX_FAMILIES, family_of
from rooflight.kernels.mangled import identifiers, is_mangled, outer_path
from rooflight.kernels.model import KernelName
from rooflight.kernels.short import short_name
from rooflight.kernels.signature import LIMIT, Signature, parse

__all__ = ["COLLECTIVES", "FAMILIES", "MATRIX_FAMILIES", "classify"]

COLLECTIVES = ("all_to_all", "allgather", "allreduce", "broadcast", "reduce_scatter", "sendrecv", "unknown")

# Function names that say nothing: the template arguments are the name.
_WRAPPERS = frozenset({"kernel", "kernel2", "device_kernel", "kentry", "kernel_entry", "trampoline_kernel"})
_LOOPS = ("elementwise_kernel", "elementwise_with_index")


@lru_cache(maxsize=4096)
def classify(name: str) -> KernelName:
    """What ``name`` tells; ``None`` where it does not.  Any text is accepted, of any length."""
    text = name[:LIMIT]
    lower = text.lower()
    if is_communication(text):
        return _collective(name, text, lower)
    signature = _signature(text)
    subject = _subject(signature, text)
    family = family_of(subject, lower) or "other"
    if family == "elementwise":
        family = _loop_family(signature)
    math = _math(family, signature, text, lower)
    return KernelName(
        name=name,
        short_name=short_name(name),
        family=family,
        dtype=math.dtype,
        compute_dtype=_compute_dtype(math),
        tensor_core=math.tensor_core,
        collective=collective_kind(lower) if family == "collective" else None,
    )


def _collective(name: str, text: str, lower: str) -> KernelName:
    if "nccl" in lower:
        dtype = nccl_dtype(lower)
    else:
        dtype = elements.first_float(elements.cpp_types(parse(text).args))
    return KernelName(
        name=name,
        short_name=short_name(name),
        family="collective",
        dtype=dtype,
        compute_dtype=dtype,
        tensor_core=False,
        collective=collective_kind(lower),
    )


def _signature(text: str) -> Signature:
    if is_mangled(text):
        return Signature("::".join(outer_path(text)), " ".join(identifiers(text)), "")
    return parse(text)


def _subject(signature: Signature, text: str) -> str:
    """What the family rules look at."""
    # The names of libraries are not the work of their kernels.
    path = signature.path.lower().replace("fbgemm", "fb")
    if not path:
        return text.lower()
    if path.rpartition("::")[2] in _WRAPPERS:
        return f"{path} {signature.args.lower()}"
    return path


def _loop_family(signature: Signature) -> str:
    """PyTorch's generic loops copy and fill too: the functor tells."""
    path, functor = signature.path.lower(), signature.args
    if not any(loop in path for loop in _LOOPS):
        return "elementwise"
    if any(word in functor for word in ("copy_kernel", "copy_device_to_device", "flip_kernel_impl")):
        return "copy"
    return "fill" if "FillFunctor" in functor else "elementwise"


# --- types and unit --------------------------------------------------------------------------------


def _math(family: str, signature: Signature, text: str, lower: str) -> matrix.Math:
    if family in ("memcpy", "memset", "sort_scan") or family.startswith("triton_"):
        return matrix.Math(None, _UNIT_OF_TRITON.get(family, False))
    if family in MATRIX_FAMILIES - {"gemv"}:
        return _matrix_math(family, signature, text, lower)
    unit = None if family == "other" and not _is_ordinary(signature) else False
    return matrix.Math(_element(family, signature, text), unit)


_UNIT_OF_TRITON = {"triton_template": True, "triton_unknown": None}


def _matrix_math(family: str, signature: Signature, text: str, lower: str) -> matrix.Math:
    # Decoders look at the name without parameters: those repeat it and add types of their own.
    head = lower if is_mangled(text) else f"{signature.path} {signature.args}".lower().strip()
    decoded = matrix.decode(head)
    dtype = elements.first_float(_argument_types(signature, text))
    if decoded is None:
        return matrix.Math(dtype, _unit(family, head, dtype))
    written = dtype if _types_win(decoded, dtype) else decoded.dtype
    return matrix.Math(written, decoded.tensor_core, decoded.compute_dtype)


def _types_win(decoded: matrix.Math, dtype: str | None) -> bool:
    """On CUDA cores the letter is a habit of naming (``implicit_convolve_sgemm<__half, ...>``)."""
    return decoded.tensor_core is False and dtype is not None and not decoded.compute_dtype


_MATRIX_UNIT_SIGNS = (
    "xdl",
    "wmma",
    "mfma",
    "tensorop",
    "mma_",
    "gmma",
    "deep_gemm",
    "marlin",
    "collectivemma",
)
_VECTOR_UNIT_SIGNS = (
    "simt",
    "engine<",
    "alg0_engine",
    "alg1_engine",
    "_engine",
    "dgrad2d_alg1",
    "convolve_sgemm",
    "gemmk1",
    "gemmsn",
    "depthwise",
    "grouped_direct",
    "naive_conv",
    "sp3asmconv",
    "causal_conv1d",
)


def _unit(family: str, head: str, dtype: str | None) -> bool | None:
    """Matrix units or not, from signs in the name; attention kernels use them unless they are fp32."""
    if family in ("attention_fwd", "attention_bwd", "attention_decode"):
        return None if dtype == "fp32" else True
    if any(s in head for s in _VECTOR_UNIT_SIGNS):
        return False
    if any(s in head for s in _MATRIX_UNIT_SIGNS) or family == "moe_gemm":
        return True
    return True if dtype in ("fp8", "tf32") else None


def _argument_types(signature: Signature, text: str) -> list[str]:
    if is_mangled(text):
        return elements.mangled_types(text)
    args = signature.args
    if signature.path.startswith(("ck::", "ck_tile::")):
        args = args.replace("unsigned short", "bhalf_t")  # which is what Composable Kernel calls it
    return elements.cpp_types(args)


def _types(signature: Signature, text: str) -> list[str]:
    found = _argument_types(signature, text)
    if is_mangled(text):
        return found
    # Of the parameters only floating types: integers there are sizes.
    return found or [t for t in elements.cpp_types(signature.params) if t in elements.FLOATS]


_FIRST_ELEMENT = frozenset({"elementwise", "copy", "fill", "reduction", "other"})


def _element(family: str, signature: Signature, text: str) -> str | None:
    """The element type of a kernel that multiplies no matrices."""
    path = signature.path.lower()
    types = _types(signature, text)
    if family == "layout" and path.startswith("batched_transpose"):
        return {"half": "2-byte", "dword": "4-byte"}.get(path.rpartition("_")[2])
    if family == "quantize":
        return _conversion(types)
    if family == "copy" and "copy_kernel" in signature.args:
        return _copy_element(signature.args, types)
    if family in ("gemm_aux", "gemv"):
        return _blas_element(signature, types)
    if family == "index":
        return _index_element(path, types)
    if family == "optimizer":
        return _list_element(signature, types)
    if family == "rng":
        # The loop's first type is the generator's; what is drawn stands in the transformation.
        drawn = signature.args.partition("_and_transform<")[2]
        return elements.first_element(elements.cpp_types(drawn) or types)
    if path.startswith("transformer_engine::vectorized_pointwise"):
        return elements.first_float(types[1:])  # the first is what it calculates in
    if "where_kernel_impl" in signature.args and types[:1] == [""]:
        return elements.first_element(types[1:])  # the condition comes first
    if family in _FIRST_ELEMENT:
        # The first type of a loop "with index", and of cuBLAS's sums, is the index's.
        indexed = path.endswith("with_index") or path.startswith(("asum_kernel", "nrm2_kernel"))
        return elements.first_element(types[1:] if indexed else types)
    return elements.first_float(types) or _token_element(path)


def _list_element(signature: Signature, types: list[str]) -> str | None:
    """Of a copy between lists target and source, which may differ."""
    functor = elements.cpp_types(signature.args.partition("CopyFunctor<")[2])[:2]
    if len(set(functor)) == 2:
        return None
    return elements.first_float(types) or _only(types)


def _conversion(types: list[str]) -> str | None:
    """Source and target where the target is fp8: it follows its source, which a type to calculate in may
    precede."""
    floats = [t for t in types if t in elements.FLOATS]
    at = floats.index("fp8") if "fp8" in floats else 0
    return f"{floats[at - 1]}->fp8" if at else None


def _copy_element(functor: str, types: list[str]) -> str | None:
    """Casting copies name their target; what they read is in the lambda."""
    if "bfloat16tofloat32_copy_kernel" in functor:
        return "bf16->fp32"
    if "direct_copy_kernel" not in functor and "float" in functor.partition("_copy_kernel")[0]:
        return None
    return elements.first_element(types)


def _blas_element(signature: Signature, types: list[str]) -> str | None:
    """cuBLAS writes index, operand, accumulator and result types in a row: the operands' one, when the
    floating types agree but for an fp32 accumulator that does not come first."""
    tensors = elements.cpp_types(signature.args.partition("TensorStridedBatched<")[2])
    if tensors:
        return elements.first_float(tensors)
    first = elements.first_float(types)
    mixed = first == "fp32" and any(t in ("bf16", "fp16", "fp8") for t in types)
    return None if mixed else first


def _index_element(path: str, types: list[str]) -> str | None:
    """Integers are positions here, unless the selected tensor comes first by its type."""
    if types[:1] == [""]:
        return None
    if path.rpartition("::")[2].startswith(
        ("indexselect", "indexfunc", "linearize_index", "index_elementwise")
    ):
        return elements.first_element(types)
    return elements.first_float(types)


def _only(types: list[str]) -> str | None:
    return types[0] or None if len(set(types)) == 1 else None


_TENSOR_POINTER = re.compile(r"tensorptr_?(bf16|f16|f32|f8e4m3fn|f8e5m2)(?![0-9])")
_POINTED = {"bf16": "bf16", "f16": "fp16", "f32": "fp32", "f8e4m3fn": "fp8", "f8e5m2": "fp8"}


def _token_element(path: str) -> str | None:
    if found := _TENSOR_POINTER.search(path):
        return _POINTED[found[1]]  # CuTe's Python kernels spell their arguments out
    for token in path.rpartition("::")[2].split("_"):
        if token in ("bf16", "fp16", "fp32"):
            return token
    return None


def _is_ordinary(signature: Signature) -> bool:
    """PyTorch's own kernels, and those over integers and fp32 only, leave the matrix units alone."""
    if signature.path.startswith(("at::", "c10::", "torch::")):
        return True
    types = elements.cpp_types(signature.args)
    return bool(types) and not any(t in ("bf16", "fp16", "fp8", "tf32") for t in types)


def _compute_dtype(math: matrix.Math) -> str | None:
    if math.compute_dtype:
        return math.compute_dtype
    return None if math.dtype is None or math.dtype.endswith("-byte") else math.dtype
