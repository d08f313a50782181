"""Communication between devices.  0 FLOPs.  The bytes are what the local memory sees at least; the bus bytes
follow nccl-tests, so that bus bytes over time compare with the speed of the link whatever the collective.

Not counted: the additions of a reduction; the buffers and further passes of an algorithm (ring, tree,
protocol).

Source: the factors of the bus bytes are those of nccl-tests (NVIDIA/nccl-tests doc/PERFORMANCE.md
@03a204a1, read 2026-12-02).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from rooflight.cost.arguments import Arguments, whole_number
from rooflight.cost.derivation import named
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import BY_NAME, DType

#: How the host's annotations of collectives begin.
ANNOTATED = "nccl:"

# The names of c10::ScalarType, as collectives record them.
_TYPES = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "bool": "bool",
    "bfloat16": "bf16",
    "complexhalf": "complex32",
    "complexfloat": "complex64",
    "complexdouble": "complex128",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "fp8_e5m2",
    "float8_e5m2fnuz": "fp8_e5m2",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which message counts, as ``size`` of (in, out), the factor to bus bytes for n ranks, and whether
    the local memory is read and written."""

    size: Callable[[int, int], int]
    factor: Callable[[int], Fraction]
    reads: bool = True
    writes: bool = True


def _ring(n: int) -> Fraction:
    return Fraction(n - 1, n)


def _one(n: int) -> Fraction:
    return Fraction(1 if n > 1 else 0)


def _sent(given: int, taken: int) -> int:
    del taken
    return given


def _taken(given: int, taken: int) -> int:
    del given
    return taken


# Order matters: the first word that a name contains decides.
_PATTERNS = (
    ("reducescatter", Pattern(_sent, _ring)),
    ("allreduce", Pattern(_sent, lambda n: 2 * _ring(n))),
    ("allgather", Pattern(_taken, _ring)),
    ("alltoall", Pattern(_sent, _ring)),
    ("broadcast", Pattern(_sent, _one)),
    ("barrier", Pattern(lambda _in, _out: 0, _one, reads=False, writes=False)),
    ("gather", Pattern(_taken, _ring)),
    ("scatter", Pattern(_sent, _ring)),
    ("reduce", Pattern(_sent, _one)),
    ("send", Pattern(_sent, _one, writes=False)),
    ("recv", Pattern(_taken, _one, reads=False)),
)


def pattern_of(name: str) -> Pattern:
    """The pattern of a collective as any layer spells it: _allgather_base, all_gather, ncclAllGather.
    Raises Unknown for names that are none, "sendrecv" among them: it may be an all_to_all."""
    plain = name.lower().replace("_", "").replace("-", "")
    if "send" in plain and "recv" in plain:
        raise Unknown("collective_unknown")
    for word, pattern in _PATTERNS:
        if word in plain:
            return pattern
    raise Unknown("collective_unknown")


def message_bytes(name: str, read: int | None, written: int | None) -> int | None:
    """The message of a collective of this name, S in the formulas of the bus bytes, from the bytes that the
    local memory sees; ``None`` where name or size is unknown."""
    try:
        pattern = pattern_of(name)
    except Unknown:
        return None
    return None if read is None or written is None else pattern.size(read, written)


def bus_bytes(name: str, message: int, ranks: int) -> int | None:
    """The bus bytes of a message in a group of so many ranks; ``None`` where the name is no collective's."""
    try:
        return int(message * pattern_of(name).factor(ranks))
    except Unknown:
        return None


def is_exchange(name: str) -> bool:
    """Whether every rank sends each other one a part of its own."""
    return "alltoall" in name.lower().replace("_", "").replace("-", "")


@cost_model("collective", "record_param_comms", family="collective")
def message(args: Arguments) -> Work:
    """From the message that is recorded with the kernel (Collective name, In/Out msg nelems, dtype,
    Group size): local memory reads In and writes Out.  Bus bytes: S * 2(n-1)/n for all_reduce (S = In),
    S * (n-1)/n for all_gather and gather (S = Out), reduce_scatter, scatter and all_to_all (S = In),
    S for broadcast, reduce, send and recv; 0 in a group of one and for a barrier."""
    comm = args.call.comm
    name = comm.get("Collective name") if comm else None
    if not isinstance(name, str):
        raise Unknown("no_shapes")
    given, taken = whole_number(comm, "In msg nelems"), whole_number(comm, "Out msg nelems")
    dtype = _TYPES.get(str(comm.get("dtype", "")).lower())
    if given is None or taken is None:
        raise Unknown("no_shapes")
    return _work(
        pattern_of(name), given, taken, BY_NAME[dtype] if dtype else None, _group_size(comm.get("Group size"))
    )


@cost_model("c10d::_allgather_base_", family="collective")
def allgather_base(args: Arguments) -> Work:
    """(result, input, ...): the group is as large as the result is larger than the input."""
    out, x = args.tensor(0), args.tensor(1)
    ranks = out.numel // x.numel if x.numel and out.numel % x.numel == 0 else None
    return _work(pattern_of("allgather"), x.numel, out.numel, x.dtype, ranks)


@cost_model("c10d::_reduce_scatter_base_", family="collective")
def reduce_scatter_base(args: Arguments) -> Work:
    """(result, input, ...): the group is as large as the input is larger than the result."""
    out, x = args.tensor(0), args.tensor(1)
    ranks = x.numel // out.numel if out.numel and x.numel % out.numel == 0 else None
    return _work(pattern_of("reduce_scatter"), x.numel, out.numel, x.dtype, ranks)


@cost_model("c10d::alltoall_base_", family="collective")
def alltoall_base(args: Arguments) -> Work:
    """(result, input, ...); the size of the group is not recorded, so that bus bytes are unknown."""
    out, x = args.tensor(0), args.tensor(1)
    return _work(pattern_of("alltoall"), x.numel, out.numel, x.dtype, None)


@cost_model(
    "c10d::allreduce_",
    "c10d::broadcast_",
    "c10d::reduce_",
    "c10d::allgather_",
    "c10d::reduce_scatter_",
    "c10d::alltoall_",
    "c10d::send",
    "c10d::recv_",
    "c10d::gather_",
    "c10d::scatter_",
    "c10d::allreduce_coalesced_",
    "c10d::allgather_coalesced_",
    "c10d::allgather_into_tensor_coalesced_",
    "c10d::reduce_scatter_tensor_coalesced_",
    family="collective",
)
def over_lists(args: Arguments) -> Work:
    """Over lists of tensors, whose type is not recorded: 0 FLOPs, bytes unknown."""
    args.tensors(0)
    return Work(0, None, None, None, "dtype_unknown")


@cost_model("c10d::barrier", family="collective")
def barrier(args: Arguments) -> Work:
    """Moves nothing that counts."""
    del args
    return Work(0, (), (), None, "", 0)


@cost_model(
    "_c10d_functional::all_reduce",
    "_c10d_functional::all_reduce_",
    "_c10d_functional::broadcast",
    "_c10d_functional::broadcast_",
    "vllm::all_reduce",
    "vllm::outplace_all_reduce",
    "sglang::outplace_all_reduce",
    "sglang::inplace_all_reduce",
    family="collective",
)
def in_full(args: Arguments) -> Work:
    """One tensor in, one as large out; the size of the group is not recorded."""
    x = args.tensor(0)
    return _work(pattern_of(args.name.split("::")[-1]), x.unique, x.numel, x.dtype, None)


@cost_model("_c10d_functional::all_gather_into_tensor", family="collective")
def functional_allgather(args: Arguments) -> Work:
    """(input, group size, group): the result is as many times the input as the group has ranks."""
    x, ranks = args.tensor(0), _group_size(args.integer(1))
    out = Tensor((x.numel, _ranks(ranks)))
    return _work(pattern_of("allgather"), x.numel, out.numel, x.dtype, ranks)


@cost_model("_c10d_functional::reduce_scatter_tensor", family="collective")
def functional_reduce_scatter(args: Arguments) -> Work:
    """(input, operation, group size, group): the result is the input over the ranks."""
    x, ranks = args.tensor(0), _group_size(args.integer(2))
    return _work(pattern_of("reduce_scatter"), x.numel, x.numel // _ranks(ranks), x.dtype, ranks)


@cost_model("_C_custom_ar::all_reduce", "sgl_kernel::all_reduce", family="collective", params="fa x result")
def custom_all_reduce(args: Arguments) -> Work:
    """all_reduce of serving engines, (handle, x, result, ...); the size of the group is not recorded."""
    x = args.tensor(1)
    return _work(pattern_of("all_reduce"), x.unique, x.numel, x.dtype, None)


@cost_model("vllm::all_gather", "vllm::reduce_scatter", family="collective", params="x dim world_size")
def along_a_dim(args: Arguments) -> Work:
    """(x, dim, group size, group): the result is as many times x as there are ranks, or x over them."""
    x, ranks = args.tensor(0), _group_size(args.integer(2))
    gathers = args.name.endswith("all_gather")
    taken = product([x.numel, _ranks(ranks)]) if gathers else x.numel // _ranks(ranks)
    return _work(pattern_of(args.name.split("::")[-1]), x.numel, taken, x.dtype, ranks)


@cost_model(family="collective", prefixes=(ANNOTATED,))
def annotated(args: Arguments) -> Work:
    """The host's annotation of a collective (nccl:all_reduce): it shows one tensor.  The result is as
    large for all_reduce, broadcast and the like; for the others it is not visible."""
    name = args.name.split(":", 1)[1]
    pattern = pattern_of(name)
    if args.kind(0) == "TensorList":
        return Work(0, None, None, None, "dtype_unknown")
    x = args.tensor(0)
    if any(word in name.lower() for word in ("gather", "scatter", "all_to_all", "alltoall")):
        return Work(0, None, None, x.dtype, "no_shapes")
    return _work(pattern, x.numel, x.numel, x.dtype, None)


def _work(pattern: Pattern, given: int, taken: int, dtype: DType | None, ranks: int | None) -> Work:
    size = Piece(pattern.size(given, taken), dtype).bytes
    bus = None
    if size is not None and ranks is not None:
        factor = pattern.factor(ranks)
        bus = named(int(size * factor), f"{size:,} x {factor}")
    elif size == 0:
        bus = 0
    reads = pieces(Piece(given, dtype)) if pattern.reads else ()
    writes = pieces(Piece(taken, dtype)) if pattern.writes else ()
    return Work(0, reads, writes, dtype, "", bus)


def _group_size(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < 1 << 31 else None


def _ranks(ranks: int | None) -> int:
    if ranks is None:
        raise Unknown("no_shapes")
    product([ranks])
    return ranks
