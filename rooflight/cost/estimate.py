"""FLOPs and bytes of a recorded call."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from rooflight.cost import registry
from rooflight.cost.arguments import Arguments
from rooflight.cost.counts import by_compiler
from rooflight.cost.model import MEASURED, MODELLED, UNKNOWN, Cost, OpCall
from rooflight.cost.registry import CostModel
from rooflight.cost.tensor import INT64_MAX, Unknown
from rooflight.cost.work import COMPOSITE, Work, pieces, total_bytes
from rooflight.dtypes import DType
from rooflight.trace.timeline import EXECUTION_TRACE

# Families whose figures rest on something else than shapes and types.
_ORIGINS = {
    "memcpy": MEASURED,
    "memset": MEASURED,
    "triton_pointwise": "inferred",
    "triton_reduction": "inferred",
}
# What the roofs know a type by: both float8 formats run on the same unit.
_ROOF_TYPES = {"fp8_e5m2": "fp8", "fp8_scale": "fp8"}


def estimate(call: OpCall) -> Cost:
    """The cost of one call as far as the recording tells; never raises, whatever was recorded.

    Example: aten::mm of [64, 128] x [128, 32] in fp32 is 2*64*128*32 = 524,288 FLOPs, reads
    4*(64*128 + 128*32) = 49,152 bytes and writes 4*64*32 = 8,192.
    """
    return by_compiler(call, _by_formula(call))


def _by_formula(call: OpCall) -> Cost:
    model = model_of(call)
    if model is None:
        return Cost(reason="unknown_op")
    try:
        return priced(worked(Arguments(call), model), model)
    except Unknown as unknown:
        return Cost(reason=unknown.reason, family=model.family, matrix=model.matrix)


def model_of(call: OpCall) -> CostModel | None:
    """The model that speaks for a call, None when there is none."""
    if not isinstance(call.op, str):
        return None
    return registry.find("collective" if _is_collective(call) else call.op)


def worked(args: Arguments, model: CostModel) -> Work:
    """The work of a call by its model's formula and by what is recorded of its results; may raise Unknown."""
    if model.at_most is not None and len(args) > model.at_most:
        raise Unknown("too_many_arguments")
    return _told(model.formula(args), args)


def _told(work: Work, args: Arguments) -> Work:
    """The work with what only the recorded results tell of it, and the reason that names their source."""
    results = args.results() if work.reads is not None and work.reason != COMPOSITE else []
    lone = work.writes or ()
    typeless = len(results) == len(lone) == 1 and lone[0].dtype is None
    if results and (work.writes is None or typeless):
        return replace(work, writes=pieces(t.like() for t in results), reason=work.reason or EXECUTION_TRACE)
    return replace(work, reason=args.call.source) if args.call.source and not work.reason else work


def is_known_op(name: str) -> bool:
    """Whether an op of this name has a formula: of nested ops, the innermost such one is costed."""
    return registry.find(name) is not None


def _is_collective(call: OpCall) -> bool:
    """Kernels of a communication library carry their message in their own args, whatever they are
    called."""
    return isinstance(call.comm, Mapping) and "Collective name" in call.comm


def priced(work: Work, model: CostModel) -> Cost:
    """The cost that a formula's work amounts to once its pieces are weighed."""
    read, written = total_bytes(work.reads), total_bytes(work.writes)
    flops, reason = work.flops, work.reason
    if is_empty(work):
        # No kernel runs for an empty result.
        flops, read, written = 0, 0, 0
    if read is None or written is None:
        reason = reason or (
            "dtype_unknown" if work.reads is not None and work.writes is not None else "no_shapes"
        )
        read = written = None
    if max(flops or 0, read or 0, written or 0, work.link_bytes or 0) > INT64_MAX:
        return Cost(reason="out_of_range", family=model.family, matrix=model.matrix)
    known = flops is not None or read is not None
    return Cost(
        flops=flops,
        bytes_read=read,
        bytes_written=written,
        origin=_ORIGINS.get(model.family, MODELLED) if known else UNKNOWN,
        reason=reason,
        dtype=_roof_type(work.dtype),
        matrix=model.matrix,
        family=model.family,
        link_bytes=work.link_bytes,
    )


def is_empty(work: Work) -> bool:
    """Whether every result is known to hold nothing."""
    return bool(work.writes) and all(p.elements == 0 for p in work.writes or ())


def _roof_type(dtype: DType | None) -> str | None:
    return None if dtype is None else _ROOF_TYPES.get(dtype.name, dtype.name)
