"""A cost whose FLOPs or bytes somebody has counted: counters of the hardware, or the compiler of a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec.structs import replace

from rooflight.cost.model import MEASURED, Cost, OpCall
from rooflight.counters.work import Counted, Executed, Moved

_MOST = (1 << 63) - 1


def with_counts(cost: Cost, counted: Counted) -> Cost:
    """The cost with what was counted in place of what the formula says; the reason tells which is which.

    A cost has one origin: ``measured`` once its bytes are, or its FLOPs where bytes are unknown.  FLOPs that
    were counted beside bytes of a formula leave the origin as it is, for the weaker figure speaks.
    """
    ran, went = counted.executed, counted.moved
    if ran is None and went is None:
        return cost
    found = cost
    if ran is not None:
        found = replace(found, flops=ran.flops)
    if ran is not None and ran.dtype is not None:
        found = replace(found, dtype=ran.dtype, matrix=ran.matrix)
    if went is not None:
        found = replace(found, bytes_read=went.read, bytes_written=went.written, bytes_total=went.total)
    if went is not None or cost.bytes is None:
        found = replace(found, origin=MEASURED)
    return replace(found, reason=_reason(cost, ran, went))


def _reason(cost: Cost, ran: Executed | None, went: Moved | None) -> str:
    """Each figure and where it is from: "bytes: dram__bytes; FLOPs modelled"."""
    bytes_, flops = _from("bytes", went, cost.bytes, cost), _from("FLOPs", ran, cost.flops, cost)
    return f"{bytes_}; {flops}"


def _from(what: str, counted: Executed | Moved | None, formula: int | None, cost: Cost) -> str:
    if counted is not None:
        return f"{what}: {counted.source}"
    return f"{what} unknown" if formula is None else f"{what} {cost.origin}"


def by_compiler(call: OpCall, cost: Cost) -> Cost:
    """The cost with what the compiler that wrote a kernel (Inductor) says of it: ``kernel_num_gb`` in 1e9
    bytes and ``kernel_flop`` in FLOPs, which it records under TORCHINDUCTOR_PROFILE or
    TORCHINDUCTOR_BENCHMARK_KERNEL (pytorch/pytorch@v2.13, torch/_inductor/codegen/triton.py and simd.py).

    It writes 0 where it does not know.
    """
    if not call.gpu_args or not isinstance(call.gpu_args, Mapping):
        return cost
    flops = _count(call.gpu_args.get("kernel_flop"), 1)
    total = _count(call.gpu_args.get("kernel_num_gb"), 10**9)
    return with_counts(
        cost,
        Counted(
            None if flops is None else Executed(flops, None, False, "the compiler's kernel_flop"),
            None if total is None else Moved(total, None, None, "the compiler's kernel_num_gb"),
        ),
    )


def _count(value: object, unit: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    amount = value * unit
    return round(amount) if math.isfinite(amount) and 0 < amount <= _MOST else None
