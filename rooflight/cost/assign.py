"""One op, several kernels: who gets its FLOPs and bytes (DEFINITIONS, section 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rooflight.cost import registry
from rooflight.cost.arguments import Arguments
from rooflight.cost.conv import gradients
from rooflight.cost.estimate import priced
from rooflight.cost.model import MODELLED, UNKNOWN, Cost, OpCall
from rooflight.cost.tensor import Unknown
from rooflight.cost.work import NOTHING

# Families of kernels that may do the work of an op family, beside the one of the same name.
_ALSO = {
    "gemm": ("gemv", "moe_gemm", "triton_template"),
    "moe_gemm": ("gemm", "gemv", "triton_template"),
    "conv_fwd": ("conv_dgrad", "gemm", "gemv", "triton_template"),
    "conv_dgrad": ("conv_fwd", "gemm"),
    "conv_wgrad": ("conv_fwd", "gemm"),
    "attention_fwd": ("attention_decode", "triton_template"),
    "attention_bwd": ("triton_template",),
    "copy": ("elementwise", "layout", "memcpy"),
    "fill": ("memset", "elementwise"),
    "elementwise": ("copy", "index"),
    "softmax": ("softmax_bwd", "reduction"),
    "softmax_bwd": ("softmax", "reduction"),
    "norm": ("norm_bwd", "reduction"),
    "norm_bwd": ("norm", "reduction"),
    "embedding": ("index",),
    "embedding_bwd": ("index", "sort_scan"),
    "index": ("elementwise", "copy", "embedding"),
    "kv_cache": ("index", "copy"),
    "optimizer": ("elementwise",),
    "triton_reduction": ("triton_persistent_reduction",),
}
_HELPERS = frozenset({"layout", "fill", "memset", "memcpy"})
AUX = "aux_kernel"

Part = tuple[str, int]  # kernel family, duration in ns


class DurationsDecideError(Exception):
    """Who gets what rests on how long the kernels took."""


class _Untimed(int):
    """A duration that nothing may rest on: whoever asks how it compares is told so."""

    def _asked(self, _other: object) -> bool:
        raise DurationsDecideError

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _asked
    __hash__ = int.__hash__


def untimed(count: int) -> list[int]:
    """Durations for :func:`assign` that end it with DurationsDecideError where it needs them: what it
    answers with them, it answers with any."""
    return [_Untimed(i) for i in range(count)]


def assign(cost: Cost, call: OpCall, kernels: Sequence[Part]) -> list[Cost]:
    """One cost per kernel ``(family, dur_ns)`` of the op ``call``, which costs ``cost``.

    The kernels of the op's family share it by duration, to the last FLOP and byte; of several families
    that could be meant, that of the longest kernel is.  When none is of its family, the longest takes
    it.  In a convolution's backward pass each gradient's kernels take the share of that gradient.
    Every other kernel has 0 FLOPs, which the main ones account for, and unknown bytes.
    """
    if len(kernels) <= 1:
        return [cost] * len(kernels)
    if cost.family == "conv_bwd" and cost.flops is not None:
        return _by_gradient(cost, call, kernels)
    if cost.flops is None and cost.bytes is None:
        return [_helper(cost) if _is_helper(k, cost.family) else cost for k, _ in kernels]
    mains = _mains(cost.family, kernels, range(len(kernels)))
    return _filled(cost, kernels, dict(zip(mains, _split(cost, kernels, mains), strict=True)))


def conv_backward_shares(call: OpCall) -> tuple[Cost, Cost]:
    """The costs of the input's gradient and of the weight's, each for itself; a gradient that the mask
    leaves out costs nothing.  Both unknown when the call is no convolution's backward pass or its dims
    are not recorded."""
    model = registry.find(call.op) if isinstance(call.op, str) else None
    if model is None or model.family != "conv_bwd":
        return Cost(reason="unknown_op"), Cost(reason="unknown_op")
    try:
        both = gradients(Arguments(call))
    except Unknown as unknown:
        nothing = Cost(reason=unknown.reason, family="conv_bwd", matrix=True)
        return nothing, nothing
    shares = both.share_of_input(), both.share_of_weight()
    data, weight = (priced(share or NOTHING, model) for share in shares)
    return replace(data, family="conv_dgrad"), replace(weight, family="conv_wgrad")


def _by_gradient(cost: Cost, call: OpCall, kernels: Sequence[Part]) -> list[Cost]:
    data, weight = conv_backward_shares(call)
    free = set(range(len(kernels)))
    given: dict[int, Cost] = {}
    wanted = [share for share in (data, weight) if share.flops]
    labelled = [s for s in wanted if any(kernels[i][0] == s.family for i in free)]
    for share in [*labelled, *(s for s in wanted if s not in labelled)]:
        own = [i for i in free if kernels[i][0] == share.family]
        others = [s.family for s in wanted if s is not share]
        left = [
            i for i in free if kernels[i][0] not in others and not _is_helper(kernels[i][0], share.family)
        ]
        mains = own or (_mains(share.family, kernels, left) if left else [])
        if not mains:
            # One kernel does both, or nothing else ran: all of the op goes where the other share went.
            return _filled(cost, kernels, _whole(cost, kernels, given))
        given |= zip(mains, _split(share, kernels, mains), strict=True)
        free -= set(mains)
    return _filled(cost, kernels, given or _whole(cost, kernels, {}))


def _whole(cost: Cost, kernels: Sequence[Part], given: dict[int, Cost]) -> dict[int, Cost]:
    mains = sorted(given) or _mains(cost.family, kernels, range(len(kernels)))
    return dict(zip(mains, _split(cost, kernels, mains), strict=True))


def _mains(family: str | None, kernels: Sequence[Part], among: Iterable[int]) -> list[int]:
    """The kernels that do the op's work: those of one family, the longest candidate's."""
    rows = list(among)
    for meant in ((family,), _ALSO.get(family or "", ())):
        found = [i for i in rows if kernels[i][0] in meant]
        if found:
            chosen = kernels[_longest(found, kernels)][0]
            return [i for i in found if kernels[i][0] == chosen]
    able = [i for i in rows if not _is_helper(kernels[i][0], family)]
    return [_longest(able or rows, kernels)]


def _longest(rows: Sequence[int], kernels: Sequence[Part]) -> int:
    if len(rows) == 1:
        return rows[0]
    return max(rows, key=lambda i: (kernels[i][1], -i))


def _is_helper(kernel: str, family: str | None) -> bool:
    if kernel == family or kernel in _ALSO.get(family or "", ()):
        return False
    return kernel.endswith("_aux") or kernel in _HELPERS


def _filled(cost: Cost, kernels: Sequence[Part], given: dict[int, Cost]) -> list[Cost]:
    return [given.get(i) or _helper(cost) for i in range(len(kernels))]


def _helper(cost: Cost) -> Cost:
    origin = MODELLED if cost.origin == UNKNOWN else cost.origin
    return Cost(flops=0, origin=origin, reason=AUX, dtype=cost.dtype, family=cost.family)


def _split(cost: Cost, kernels: Sequence[Part], rows: Sequence[int]) -> list[Cost]:
    if len(rows) == 1:
        return [cost]
    weights = [max(0, kernels[i][1]) for i in rows]
    columns = [
        shares(value, weights)
        for value in (cost.flops, cost.bytes_read, cost.bytes_written, cost.link_bytes, cost.bytes_total)
    ]
    return [
        replace(cost, flops=f, bytes_read=r, bytes_written=w, link_bytes=link, bytes_total=total)
        for f, r, w, link, total in zip(*columns, strict=True)
    ]


def shares(total: int | None, weights: Sequence[int]) -> list[int | None]:
    """``total`` in proportion to the weights, in whole numbers that sum to it exactly: the largest
    remainders get what is left (the first of equals).  Weights that are all 0 share alike.

    Example: 10 over (1, 1, 1) is 4, 3, 3.
    """
    if total is None:
        return [None] * len(weights)
    if sum(weights) <= 0:
        weights = [1] * len(weights)
    whole = sum(weights)
    parts = [total * w // whole for w in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return list(parts)
