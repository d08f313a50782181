"""Attention: fused kernels, which never write the matrix of scores.

Forward is two products per kept (query, key) pair, backward five (the scores are computed again).

Not counted: the softmax, the scale, a bias's addition, dropout and its random state, the sums that a split
over the keys writes; pairs that a mask leaves out.

Source: five products backward to two forward as in flash-attention's benchmark, 2.5 to 1
(Dao-AILab/flash-attention benchmarks/benchmark_flash_attention.py, read 2026-12-02) and in torch's
FlopCounterMode; both differ from here under a causal mask, where the benchmark takes half of the square,
torch all of it, and we the pairs that are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflight.cost.arguments import Arguments
from rooflight.cost.derivation import named
from rooflight.cost.gemm import broadcast
from rooflight.cost.promotion import statistics
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Moved, Work, pieces

TOP_LEFT, BOTTOM_RIGHT = "top_left", "bottom_right"


@dataclass(frozen=True, slots=True)
class Heads:
    """The sizes of one attention: batch, query heads, lengths and head dims."""

    batch: int
    heads: int
    queries: int
    keys: int
    qk: int
    v: int

    def flops(self, pairs: int, per_qk: int, per_v: int) -> int:
        """Two FLOPs for each of ``per_qk`` products over the query-key dim and ``per_v`` over the value
        dim, in each kept pair."""
        return 2 * product([max(self.batch, 0), self.heads]) * pairs * (per_qk * self.qk + per_v * self.v)

    @property
    def rows(self) -> int:
        return product([self.batch, self.heads, self.queries])


def kept_pairs(
    queries: int, keys: int, *, causal: str | None = None, left: int | None = None, right: int | None = None
) -> int:
    """(query, key) pairs that a mask keeps, without walking over them.

    ``causal`` is where the diagonal is anchored: query i sees keys up to i (top left) or up to
    i + keys - queries (bottom right).  A window keeps ``left`` keys before the diagonal and ``right``
    behind it, measured from the bottom right anchor unless the mask is anchored at the top left.
    """
    if causal is None and left is None and right is None:
        return queries * keys
    return named(_kept(queries, keys, causal, left, right), "kept pairs")


def _kept(queries: int, keys: int, causal: str | None, left: int | None, right: int | None) -> int:
    shift = 0 if causal == TOP_LEFT or queries == keys else keys - queries
    if causal is not None:
        right = 0 if right is None else min(right, 0)
    upper = keys + queries if right is None else shift + right
    lower = -queries - keys if left is None else shift - left
    return max(0, _pairs_up_to(upper, queries, keys) - _pairs_up_to(lower - 1, queries, keys))


def _pairs_up_to(d: int, queries: int, keys: int) -> int:
    """Pairs (i, j) of the grid with j - i <= d: the sum over i of clamp(i + d + 1, 0, keys)."""
    return _clamped_sum(queries + d, keys) - _clamped_sum(d, keys)


def _clamped_sum(x: int, top: int) -> int:
    """Sum of clamp(t, 0, top) for all t <= x."""
    if x <= 0:
        return 0
    return x * (x + 1) // 2 if x <= top else top * (top + 1) // 2 + (x - top) * top


def heads_first(q: Tensor, k: Tensor, v: Tensor) -> Heads:
    """Sizes of [batch.., heads, length, dim] operands."""
    return _heads(q, k, v, head=-3, length=-2)


def length_first(q: Tensor, k: Tensor, v: Tensor) -> Heads:
    """Sizes of [batch, length, heads, dim] operands."""
    if len(q.dims) != 4:
        raise Unknown("lengths_are_values")
    return _heads(q, k, v, head=-2, length=-3)


def _heads(q: Tensor, k: Tensor, v: Tensor, head: int, length: int) -> Heads:
    ranks = {len(t.dims) for t in (q, k, v)}
    if len(ranks) != 1 or ranks.pop() < 3:
        raise Unknown("bad_shapes")
    if q.dims[-1] != k.dims[-1] or k.dims[length] != v.dims[length]:
        raise Unknown("bad_shapes")
    return Heads(product(q.dims[:-3]), q.dims[head], q.dims[length], k.dims[length], q.dims[-1], v.dims[-1])


def forward(q: Tensor, k: Tensor, v: Tensor, sizes: Heads, pairs: int, bias: Moved, lse: bool) -> Work:
    """Two products per kept pair; the result and, when asked for, one log-sum-exp per row are written."""
    out = Piece(product([sizes.rows, sizes.v]), q.dtype)
    stats = Piece(sizes.rows, statistics(q.dtype)) if lse else None
    return Work(sizes.flops(pairs, 1, 1), pieces(q, k, v, bias), pieces(out, stats), q.dtype)


@cost_model(
    "aten::scaled_dot_product_attention",
    family="attention_fwd",
    matrix=True,
    params="q k v attn_mask dropout_p is_causal scale enable_gqa",
)
def scaled_dot_product_attention(args: Arguments) -> Work:
    """2*B*Hq*P*(Dqk+Dv) FLOPs for P kept pairs; causal masks are anchored at the top left.  It is a
    composite: where a fused kernel below it is recorded, that one is costed instead."""
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = _with_batch(heads_first(q, k, v), q, k, v)
    pairs = kept_pairs(sizes.queries, sizes.keys, causal=TOP_LEFT if args.flag(5) else None)
    work = forward(q, k, v, sizes, pairs, args.maybe(3), lse=False)
    return Work(work.flops, work.reads, work.writes, work.dtype, "composite")


@cost_model(
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    family="attention_fwd",
    matrix=True,
)
def flash(args: Arguments) -> Work:
    """As scaled_dot_product_attention; reads Q, K, V (and a bias) once, writes the result and one fp32
    log-sum-exp per row.  The scores are never written."""
    bias = args.maybe(5) if args.name.endswith("_for_cpu") else None
    return _torch_forward(args, causal=4, bias=bias, lse=True)


@cost_model(
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    family="attention_fwd",
    matrix=True,
)
def efficient(args: Arguments) -> Work:
    """As the flash kernel; the bias may be expanded over batch and heads, and the log-sum-exp is
    written only when asked for."""
    return _torch_forward(args, causal=6, bias=args.maybe(3), lse=args.flag(4) is not False)


@cost_model(
    "aten::_scaled_dot_product_fused_attention_overrideable",
    "aten::_scaled_dot_product_attention_math_for_mps",
    family="attention_fwd",
    matrix=True,
)
def overrideable(args: Arguments) -> Work:
    """As the flash kernel, of backends outside torch."""
    return _torch_forward(args, causal=5, bias=args.maybe(3), lse=True)


def _torch_forward(args: Arguments, causal: int, bias: Moved, lse: bool) -> Work:
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = heads_first(q, k, v)
    pairs = kept_pairs(sizes.queries, sizes.keys, causal=TOP_LEFT if args.flag(causal) else None)
    return forward(q, k, v, sizes, pairs, bias, lse)


@cost_model(
    "aten::_flash_attention_forward",
    family="attention_fwd",
    matrix=True,
    params="q k v cum_seq_q cum_seq_k max_q max_k dropout_p is_causal return_debug_mask scale "
    "window_size_left window_size_right",
)
def flash_forward(args: Arguments) -> Work:
    """The flash kernel itself, [batch, length, heads, dim]; causal masks are anchored at the bottom
    right, windows clip them.  With cumulative lengths (packed sequences) the work is unknown."""
    refuse_packed(args, 3, 4)
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = length_first(q, k, v)
    pairs = window_pairs(args, sizes, causal=8, left=11, right=12)
    return forward(q, k, v, sizes, pairs, None, lse=True)


@cost_model(
    "flash_attn::_flash_attn_forward",
    "flashattn::_flash_attn_forward",
    family="attention_fwd",
    matrix=True,
    params="q k v dropout_p softmax_scale causal window_size_left window_size_right softcap "
    "alibi_slopes return_softmax",
)
def flash_attn_forward(args: Arguments) -> Work:
    """The flash-attn library, [batch, length, heads, dim]; causal masks are anchored at the bottom
    right; a window of -1 is open."""
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = length_first(q, k, v)
    pairs = window_pairs(args, sizes, causal=5, left=6, right=7)
    return forward(q, k, v, sizes, pairs, None, lse=True)


@cost_model(
    "aten::_efficient_attention_forward",
    family="attention_fwd",
    matrix=True,
    params="q k v bias cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k dropout_p custom_mask_type "
    "compute_log_sumexp scale",
)
def efficient_forward(args: Arguments) -> Work:
    """The memory-efficient kernel itself, [batch, length, heads, dim], with its number for the mask:
    1 is causal from the top left, 2 from the bottom right."""
    refuse_packed(args, 4, 5)
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = length_first(q, k, v)
    pairs = kept_pairs(sizes.queries, sizes.keys, causal=_MASKS.get(args.integer(9) or 0))
    return forward(q, k, v, sizes, pairs, args.maybe(3), lse=args.flag(10) is True)


_MASKS = {1: TOP_LEFT, 2: BOTTOM_RIGHT}


@cost_model("aten::_scaled_dot_product_attention_math", family="attention_fwd", matrix=True)
def math_attention(args: Arguments) -> Work:
    """Attention written out as products and a softmax: its children are costed, it is not."""
    args.tensor(0)
    raise Unknown("composite")


@cost_model(
    "aten::_scaled_dot_product_flash_attention_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse cum_seq_q cum_seq_k max_q max_k dropout_p is_causal philox_seed "
    "philox_offset scale",
)
def flash_backward(args: Arguments) -> Work:
    """2*B*Hq*P*(3*Dqk+2*Dv) FLOPs: the scores once more, dV, dP, dQ and dK.  Reads dO, Q, K, V, O and
    the log-sum-exp, writes dQ, dK and dV (the latter two with the heads of K and V)."""
    refuse_packed(args, 6, 7)
    return backward(args, heads_first, causal=TOP_LEFT if args.flag(11) else None)


@cost_model(
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse dropout_p is_causal attn_mask scale",
)
def flash_cpu_backward(args: Arguments) -> Work:
    """As the flash backward, on the CPU."""
    causal = TOP_LEFT if args.flag(7) else None
    return backward(args, heads_first, causal=causal, bias=args.maybe(8))


@cost_model(
    "aten::_flash_attention_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse cum_seq_q cum_seq_k max_q max_k dropout_p is_causal rng_state unused scale "
    "window_size_left window_size_right",
)
def flash_kernel_backward(args: Arguments) -> Work:
    """As the flash backward, [batch, length, heads, dim], causal from the bottom right, with windows."""
    refuse_packed(args, 6, 7)
    return backward(args, length_first, window=(11, 15, 16))


@cost_model(
    "flash_attn::_flash_attn_backward",
    "flashattn::_flash_attn_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse dq dk dv dropout_p softmax_scale causal window_size_left window_size_right "
    "softcap alibi_slopes deterministic rng_state",
)
def flash_attn_backward(args: Arguments) -> Work:
    """As the flash backward, of the flash-attn library."""
    return backward(args, length_first, window=(11, 12, 13))


@cost_model(
    "aten::_scaled_dot_product_efficient_attention_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v bias O lse philox_seed philox_offset dropout_p grad_input_mask is_causal scale",
)
def efficient_backward(args: Arguments) -> Work:
    """As the flash backward; reads the bias, and writes its gradient when the mask asks for it."""
    causal = TOP_LEFT if args.flag(11) else None
    wanted = args.flags(10) or ()
    grad_bias = args.maybe(4) if len(wanted) > 3 and wanted[3] else None
    return backward(args, heads_first, causal=causal, bias=args.maybe(4), out=5, grad_bias=grad_bias)


@cost_model(
    "aten::_scaled_dot_product_cudnn_attention_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse philox_seed philox_offset bias cum_seq_q cum_seq_k max_q max_k dropout_p "
    "is_causal scale",
)
def cudnn_backward(args: Arguments) -> Work:
    """As the flash backward, of cuDNN."""
    refuse_packed(args, 9, 10)
    return backward(args, heads_first, causal=TOP_LEFT if args.flag(14) else None, bias=args.maybe(8))


@cost_model("aten::_efficient_attention_backward", family="attention_bwd", matrix=True)
def efficient_kernel_backward(args: Arguments) -> Work:
    """As the flash backward, [batch, length, heads, dim], with the number for the mask."""
    refuse_packed(args, 6, 7)
    causal = _MASKS.get(args.integer(14) or 0)
    return backward(args, length_first, causal=causal, bias=args.maybe(4), out=5, lse=10)


@cost_model(
    "flash_attn::_flash_attn_varlen_forward",
    "flash_attn::_flash_attn_varlen_backward",
    "flashattn::_flash_attn_varlen_forward",
    "flashattn::_flash_attn_varlen_backward",
    "vllm::unified_attention",
    "vllm::unified_attention_with_output",
    "vllm::unified_mla_attention",
    "vllm::unified_mla_attention_with_output",
    "vllm_flash_attn::varlen_fwd",
    "_vllm_fa2_C::varlen_fwd",
    "_vllm_fa3_C::fwd",
    "sglang::unified_attention_with_output",
    "sgl_kernel::fwd",
    "aiter::mha_batch_prefill",
    "aiter::fmha_v3_varlen_fwd",
    "aiter::fmha_v3_varlen_bwd",
    "aiter::mha_varlen_fwd",
    "aiter::mha_varlen_bwd",
    "aiter::wrapper_mha_varlen_fwd",
    "aiter::wrapper_mha_varlen_bwd",
    "aiter::wrapper_fmha_v3_varlen_fwd",
    "aiter::wrapper_fmha_v3_varlen_bwd",
    "aiter::wrapper_mha_batch_prefill",
    "_C::sm100_cutlass_mla_decode",
    "sgl_kernel::cutlass_mla_decode",
    "xformers::efficient_attention_forward_decoder",
    "xformers_flash3::flash_fwd",
    "aiter::paged_attention_v1",
    "aiter::paged_attention_ragged",
    "aiter::pa_fwd_asm",
    "_C::paged_attention_v1",
    "_C::paged_attention_v2",
    "_rocm_C::paged_attention",
    family="attention_fwd",
    matrix=True,
)
def packed_attention(args: Arguments) -> Work:
    """Packed or paged sequences: their lengths are values, which no recording holds, and the dims of
    K and V are those of the whole cache.  Unknown on purpose."""
    del args
    raise Unknown("lengths_are_values")


def backward(
    args: Arguments,
    layout: object,
    *,
    causal: str | None = None,
    window: tuple[int, int, int] | None = None,
    bias: Moved = None,
    out: int = 4,
    lse: int | None = None,
    grad_bias: Tensor | None = None,
) -> Work:
    """Five products per kept pair, of (dO, q, k, v, ..): ``out`` and ``lse`` say where those saved stand."""
    grad, q, k, v = (args.tensor(i) for i in range(4))
    sizes = heads_first(q, k, v) if layout is heads_first else length_first(q, k, v)
    if window is None:
        pairs = kept_pairs(sizes.queries, sizes.keys, causal=causal)
    else:
        pairs = window_pairs(args, sizes, *window)
    saved = args.tensor(out), args.tensor(out + 1 if lse is None else lse)
    writes = pieces(q.like(), k.like(), v.like(), grad_bias)
    return Work(sizes.flops(pairs, 3, 2), pieces(grad, q, k, v, saved, bias), writes, q.dtype)


def window_pairs(args: Arguments, sizes: Heads, causal: int, left: int, right: int) -> int:
    """Kept pairs under the flag and the window at these places, anchored at the bottom right; -1 is open."""
    anchor = BOTTOM_RIGHT if args.flag(causal) else None
    before, behind = (None if n is None or n < 0 else n for n in (args.integer(left), args.integer(right)))
    return kept_pairs(sizes.queries, sizes.keys, causal=anchor, left=before, right=behind)


def refuse_packed(args: Arguments, *where: int) -> None:
    """Unknown where lengths or pages are given: they are values."""
    if any(args.maybe(i) is not None for i in where):
        raise Unknown("lengths_are_values")


def _with_batch(sizes: Heads, q: Tensor, k: Tensor, v: Tensor) -> Heads:
    """The composite broadcasts batch dims."""
    batch = broadcast(q.dims[:-3], k.dims[:-3], v.dims[:-3])
    return Heads(product(batch), sizes.heads, sizes.queries, sizes.keys, sizes.qk, sizes.v)
