"""FLOPs and bytes from the metrics of CUPTI and Nsight Compute.

Sources: HTA counts add and mul as 1, fma as 2 (facebookresearch/HolisticTraceAnalysis@1cea8d47,
hta/analyzers/cupti_counter_analysis.py), as NVIDIA's table of nvprof's flop_count_* in Nsight Compute's
metrics does; ``sm__ops_path_tensor_*`` are "math ops executed in Tensor path", which NVIDIA names for FLOPs
(https://forums.developer.nvidia.com/t/285256, seen 2026-12); a sector is 32 bytes (Nsight Compute's
Profiling Guide).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rooflight.counters.work import Executed, Kernel, Moved, Traffic, Values, sum_of, whole

_SECTOR_BYTES = 32
#: Percentages are printed with two decimals.
_LEAST_PERCENT = 1.0
_HALF = frozenset({"fp16", "bf16"})
_TYPES = {"d": "fp64", "f": "fp32", "h": "fp16"}
#: The instructions of packed fp32, two at a time, exist from this compute capability on.
_PACKED_FROM = 10
_TENSOR_OPS = re.compile(
    r"sm__ops_path_tensor_src_(?P<src>\w+?)(?:_dst_(?P<dst>[a-z]+\d+))?(?:_sparsity_(?P<sparse>on|off))?\.sum"
)
#: Source types of the matrix unit that have a roof; of mixed ones it is not told which.
_ROOFS = frozenset({"fp64", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"})
_TENSOR_INSTRUCTIONS = "sm__inst_executed_pipe_tensor.sum"
L2, L1 = "lts__t", "l1tex__t"
TIME, RATE = "gpu__time_duration.sum", "dram__bytes.sum.per_second"


def executed(values: Values, kernel: Kernel) -> Executed | None:
    """The FLOPs that ran.  Those of the matrix unit alone where it ran, as a formula counts them; those of
    the vector units only where it is certain that the matrix unit did not run."""
    tensor = _tensor(values)
    if tensor is not None and tensor.flops:
        return tensor
    idle = values.get(_TENSOR_INSTRUCTIONS)
    return _vector(values, kernel) if idle == 0 or (idle is None and kernel.matrix_unit is False) else None


def moved(values: Values) -> Moved | None:
    """The bytes between L2 and device memory."""
    read, written = _dram(values, "_read"), _dram(values, "_write")
    if read is not None and written is not None:
        return Moved(read + written, read, written, "dram__bytes_read + dram__bytes_write")
    total = _dram(values, "")
    if total is not None:
        return Moved(total, None, None, "dram__bytes")
    if RATE in values and TIME in values:
        return Moved(whole(values[RATE] * values[TIME] / 1e9), None, None, "DRAM bytes per second x duration")
    return None


def cached(values: Values, unit: str) -> Traffic | None:
    """The bytes through a cache: ``lts__t`` is L2, ``l1tex__t`` is L1 (with textures, without shared memory's
    own).  Its peak is what the counters' own percentage of it makes of their rate."""
    sectors, time = sum_of(values, {f"{unit}_sectors.sum": _SECTOR_BYTES}), values.get(TIME)
    total = values.get(f"{unit}_bytes.sum", sectors)
    rate = values.get(f"{unit}_bytes.sum.per_second")
    if total is None and rate is not None and time is not None:
        total = rate * time / 1e9
    if total is None:
        return None
    if rate is None and time:
        rate = total / time * 1e9
    return Traffic(whole(total), _peak(rate, _percent(values, unit)))


def _percent(values: Values, unit: str) -> float | None:
    names = (f"{unit}_{what}.sum.pct_of_peak_sustained_elapsed" for what in ("bytes", "sectors"))
    return next((values[name] for name in names if name in values), None)


def _peak(rate: float | None, percent: float | None) -> float | None:
    """``None`` where so little of it was used that the percentage's rounding would tell the peak."""
    return rate / percent * 100 if rate and percent and _LEAST_PERCENT <= percent <= 100 else None


def _dram(values: Values, way: str) -> int | None:
    sectors = sum_of(values, {f"dram__sectors{way}.sum": _SECTOR_BYTES})
    found = values.get(f"dram__bytes{way}.sum", sectors)
    return None if found is None else whole(found)


# -- matrix unit -------------------------------------------------------------------------------------


def _tensor(values: Values) -> Executed | None:
    """All ops of the matrix unit; a metric that is the sum of others that are there stands for them.

    ``None`` when none was counted, and when some were on sparse operands: what one of those is worth in
    dense FLOPs is not told.
    """
    found = {m["src"]: list[tuple[re.Match[str], float]]() for m, _ in _ops(values)}
    for match, value in _ops(values):
        found[match["src"]].append((match, value))
    if not found or any(m["sparse"] == "on" and value for rows in found.values() for m, value in rows):
        return None
    by_source = {src: _without_parts(rows) for src, rows in found.items()}
    most = max(by_source, key=lambda src: (by_source[src], src))
    dtype = most if most in _ROOFS else None
    return Executed(whole(sum(by_source.values())), dtype, True, "sm__ops_path_tensor")


def _ops(values: Values) -> Iterator[tuple[re.Match[str], float]]:
    for metric, value in values.items():
        if match := _TENSOR_OPS.fullmatch(metric):
            yield match, value


def _without_parts(rows: list[tuple[re.Match[str], float]]) -> float:
    """The sum over (destination, sparsity), where an entry without either holds those with it."""
    kept = {(m["dst"], m["sparse"]): value for m, value in rows}
    if (None, None) in kept:
        return kept[None, None]
    total = 0.0
    for (dst, sparse), value in kept.items():
        held = (sparse is not None and (dst, None) in kept) or (dst is not None and (None, sparse) in kept)
        total += 0 if held else value
    return total


# -- vector units ------------------------------------------------------------------------------------


def _vector(values: Values, kernel: Kernel) -> Executed | None:
    """FLOPs by instruction; ``None`` unless all instructions that the kernel's type needs were counted."""
    by_kind = {kind: _of_kind(values, kind) for kind in _TYPES}
    packed = _of_kind(values, "f", "2", 2)
    needs_packed = kernel.major is None or kernel.major >= _PACKED_FROM
    needed = {"fp64": "d", "fp32": "f", "fp16": "fh", "bf16": "fh"}.get(kernel.dtype or "", "dfh")
    if any(by_kind[kind] is None for kind in needed) or (needs_packed and "f" in needed and packed is None):
        return None
    if _are_moves(values, kernel):
        by_kind["h"] = 0
    by_kind["f"] = None if by_kind["f"] is None else by_kind["f"] + (packed or 0)
    counted = {kind: flops for kind, flops in by_kind.items() if flops is not None}
    most = max(counted, key=lambda kind: counted[kind])
    dtype = _TYPES[most] if counted[most] else None
    return Executed(sum(counted.values()), dtype, False, "smsp__sass_thread_inst_executed_op")


def _of_kind(values: Values, kind: str, suffix: str = "", each: int = 1) -> int | None:
    for unit in ("smsp", "sm"):
        name = f"{unit}__sass_thread_inst_executed_op_{kind}%s{suffix}_pred_on.sum"
        found = sum_of(values, {name % "add": each, name % "mul": each, name % "fma": 2 * each})
        if found is not None:
            return whole(found)
    return None


def _are_moves(values: Values, kernel: Kernel) -> bool:
    """Compilers set registers to constants by a half-precision fma of 0 and the constant: in a kernel of
    another type that adds and multiplies nothing in half precision they are no arithmetic."""
    if kernel.dtype in _HALF:
        return False
    others = (f"{unit}__sass_thread_inst_executed_op_{op}_pred_on.sum"
              for unit in ("smsp", "sm") for op in ("hadd", "hmul"))  # fmt: skip
    return not any(values.get(metric) for metric in others)
