"""FLOPs and bytes from the counters of rocprof.

Sources: rocprof-compute's roofline (ROCm/rocm-systems, projects/rocprofiler-compute, analysis_configs/gfx90a
and gfx942, 0400_roofline.yaml, seen 2026-12): an instruction of the vector unit counts for the 64 lanes of
its wave, fma twice, ``MOPS`` of the matrix unit in units of 512; reads of 128 B (``TCC_BUBBLE``), 64 B and
32 B, writes of 64 B and 32 B.  On gfx950 ``TCC_BUBBLE`` does not count, and reads have counters by size
(ROCm/rocm-systems@aa5dfb98).
"""

from __future__ import annotations

from rooflight.counters.work import Executed, Kernel, Moved, Values, sum_of, whole

_LANES = 64
_MOPS = 512
_MATRIX_TYPES = {"F64": "fp64", "F32": "fp32", "XF32": "tf32", "F16": "fp16", "BF16": "bf16", "F8": "fp8",
                 "I8": "int8"}  # fmt: skip
_VECTOR_TYPES = {"F64": "fp64", "F32": "fp32", "F16": "fp16"}
_KIB = 1024


def executed(values: Values, kernel: Kernel) -> Executed | None:
    """The FLOPs that ran.  Those of the matrix unit alone where it ran, as a formula counts them; those of
    the vector unit only where it is certain that the matrix unit did not run."""
    mops = {t: values.get(f"SQ_INSTS_VALU_MFMA_MOPS_{name}", 0) for name, t in _MATRIX_TYPES.items()}
    if any(mops.values()):
        most = max(mops, key=lambda dtype: mops[dtype])
        return Executed(whole(_MOPS * sum(mops.values())), most, True, "SQ_INSTS_VALU_MFMA_MOPS")
    ran = values.get("SQ_INSTS_MFMA", values.get("SQ_INSTS_VALU_MFMA"))
    return _vector(values) if ran == 0 or (ran is None and kernel.matrix_unit is False) else None


def _vector(values: Values) -> Executed | None:
    found = {dtype: _of_type(values, name) for name, dtype in _VECTOR_TYPES.items()}
    known = {dtype: flops for dtype, flops in found.items() if flops is not None}
    if len(known) < len(found):
        return None
    most = max(known, key=lambda dtype: known[dtype])
    source = f"SQ_INSTS_VALU, {_LANES} lanes each"
    return Executed(sum(known.values()), most if known[most] else None, False, source)


def _of_type(values: Values, name: str) -> int | None:
    flops = {"ADD": _LANES, "MUL": _LANES, "TRANS": _LANES, "FMA": 2 * _LANES}
    found = sum_of(values, {f"SQ_INSTS_VALU_{op}_{name}": each for op, each in flops.items()})
    return None if found is None else whole(found)


def moved(values: Values, kernel: Kernel) -> Moved | None:
    """The bytes between L2 and device memory: what the requests of L2 asked for."""
    for unit in ("TCC_EA0", "TCC_EA"):
        read, written = _read(values, unit, kernel), _written(values, unit)
        if read is not None and written is not None:
            return Moved(read + written, read, written, f"{unit} requests by size")
    sizes = [values.get(f"{name}_SIZE") for name in ("FETCH", "WRITE")]
    # FETCH_SIZE is made from TCC_BUBBLE.
    if None in sizes or kernel.compute is None or _is_gfx950(kernel):
        return None
    read, written = (whole(_KIB * size) for size in sizes if size is not None)
    return Moved(read + written, read, written, "FETCH_SIZE + WRITE_SIZE")


def _read(values: Values, unit: str, kernel: Kernel) -> int | None:
    by_size = sum_of(values, {f"{unit}_RDREQ_{size}B_sum": size for size in (32, 64, 128)})
    if by_size is not None:
        return whole(by_size)
    requests, small = values.get(f"{unit}_RDREQ_sum"), values.get(f"{unit}_RDREQ_32B_sum")
    if requests is None or small is None:
        return None
    if unit == "TCC_EA":
        return whole(64 * (requests - small) + 32 * small)
    large = values.get("TCC_BUBBLE_sum")
    if large is None or (large == 0 and not (kernel.compute or "").startswith("9.4")):
        return None
    return whole(128 * large + 64 * (requests - large - small) + 32 * small)


def _is_gfx950(kernel: Kernel) -> bool:
    return kernel.compute == "9.5"


def _written(values: Values, unit: str) -> int | None:
    requests, large = values.get(f"{unit}_WRREQ_sum"), values.get(f"{unit}_WRREQ_64B_sum")
    return None if requests is None or large is None else whole(64 * large + 32 * (requests - large))
