"""Which kernels move data between devices (DEFINITIONS §4), and which collective they are."""

from __future__ import annotations

import re

# The closed list of §4.  A name that merely contains "reduce", "gather" or "scatter" computes.
_COMMUNICATES = re.compile(
    r"nccl|rccl|msccl|oneccl|cross_device_reduce|nvshmem|multimem_|(?:one|two)_shot_all_?reduce|deep_ep",
    re.IGNORECASE,
)

# First match wins: "reduce_scatter" before "reduce", all-gather before anything that gathers.
_KINDS = (
    ("reduce_scatter", ("reducescatter", "reduce_scatter", "rr_rs")),
    ("allreduce", ("allreduce", "all_reduce", "cross_device_reduce")),
    ("allgather", ("allgather", "all_gather", "rr_ag")),
    ("all_to_all", ("alltoall", "all_to_all", "deep_ep::internode", "deep_ep::intranode")),
    ("broadcast", ("broadcast",)),
    ("sendrecv", ("sendrecv", "send_recv", "pushsend", "pullrecv")),
)

# NCCL writes the type of a reduction at the end of the name (before 2.17) or after the operator
# (since).  Types of one byte are left out: copies of any type run as bytes.
_NCCL_TYPE = re.compile(
    r"(?:sum|prod|min|max|minmax|premulsum|sumpostdiv)_{1,3}"
    r"(nv_bfloat16|bf16|half|f16|float|f32|double|f64|u?int32_t|[iu]32|u?int64_t|[iu]64|f8e4m3|f8e5m2)(?![a-z0-9])"
)
_NCCL_DTYPES = {
    "nv_bfloat16": "bf16",
    "bf16": "bf16",
    "half": "fp16",
    "f16": "fp16",
    "float": "fp32",
    "f32": "fp32",
    "double": "fp64",
    "f64": "fp64",
    "int32_t": "int32",
    "i32": "int32",
    "int64_t": "int64",
    "i64": "int64",
    "f8e4m3": "fp8",
    "f8e5m2": "fp8",
}


def is_communication(name: str) -> bool:
    """Whether the name is one of a communication kernel.

    A kernel whose args carry "Collective name" communicates too; the caller, who has the args, asks.
    """
    return _COMMUNICATES.search(name) is not None


def collective_kind(lower: str) -> str:
    """The collective of a communication kernel, ``unknown`` where the name does not tell."""
    for kind, needles in _KINDS:
        if any(n in lower for n in needles):
            return kind
    return "unknown"


def nccl_dtype(lower: str) -> str | None:
    """The element type of an NCCL reduction; a gather or a send moves bytes and tells nothing."""
    if collective_kind(lower) in ("allgather", "sendrecv", "all_to_all", "broadcast"):
        return None
    found = _NCCL_TYPE.search(lower)
    return _NCCL_DTYPES.get(found[1]) if found else None
