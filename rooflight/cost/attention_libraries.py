"""Attention of libraries outside torch, where their arguments tell the work: batches of equal length.

Not counted: as in torch's own attention (the softmax, the scale, dropout, sums of a split over the keys).

Source: the order of arguments as each library registers its ops: Dao-AILab/flash-attention
hopper/flash_attn_interface.py @01afd16d; facebookresearch/xformers xformers/csrc/attention/attention.cpp
@ed226f48; ROCm/aiter aiter/ops/mha.py (all read 2026-12-02).  The work is that of attention.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.attention import (
    BOTTOM_RIGHT,
    TOP_LEFT,
    backward,
    forward,
    kept_pairs,
    length_first,
    refuse_packed,
    window_pairs,
)
from rooflight.cost.promotion import BF16
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Unknown
from rooflight.cost.work import Work, pieces

# New keys and values, lengths, pages and rotations of a cache: each makes the lengths values.
_CACHE = (3, 4, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19)
_MASKS = {0: None, 1: TOP_LEFT, 2: BOTTOM_RIGHT}


@cost_model(
    "flash_attn_3::fwd",
    "flash_attn_3::_flash_attn_forward",
    family="attention_fwd",
    matrix=True,
    params="q k v k_new v_new q_v out cu_seqlens_q cu_seqlens_k cu_seqlens_k_new seqused_q seqused_k "
    "max_seqlen_q max_seqlen_k page_table kv_batch_idx leftpad_k rotary_cos rotary_sin seqlens_rotary "
    "q_descale k_descale v_descale softmax_scale causal window_size_left window_size_right attention_chunk",
)
def flash_attn_3(args: Arguments) -> Work:
    """FlashAttention 3, [batch, length, heads, dim]; causal masks are anchored at the bottom right, a window
    of -1 is open.  A further query over the values (q_v) is a product over the value dim.  float8 operands
    give a bf16 result.  With lengths, pages or a cache the work is unknown."""
    refuse_packed(args, *_CACHE)
    if args.integer(27):
        raise Unknown("mask_unknown")
    q, k, v = (args.tensor(i) for i in range(3))
    sizes, q_v = length_first(q, k, v), args.maybe(5)
    pairs = window_pairs(args, sizes, 24, 25, 26)
    scales = [args.maybe(i) for i in (20, 21, 22)]
    work = forward(q, k, v, sizes, pairs, None, lse=True)
    out, lse = work.writes or ()
    narrow = q.dtype is not None and q.dtype.name.startswith("fp8")
    written = pieces(Piece(out.elements, BF16) if narrow else out, lse)
    flops = sizes.flops(pairs, 1, 1 if q_v is None else 2)
    return Work(flops, pieces(q, k, v, q_v, scales), written, q.dtype)


@cost_model(
    "flash_attn_3::bwd",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse dq dk dv cu_seqlens_q cu_seqlens_k seqused_q seqused_k max_seqlen_q max_seqlen_k "
    "softmax_scale is_causal window_size_left window_size_right softcap deterministic",
)
def flash_attn_3_backward(args: Arguments) -> Work:
    """As the flash backward, of FlashAttention 3."""
    refuse_packed(args, 9, 10, 11, 12)
    return backward(args, length_first, window=(16, 17, 18))


@cost_model(
    "flash_attn_3::_flash_attn_backward",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse cu_seqlens_q cu_seqlens_k seqused_q seqused_k max_seqlen_q max_seqlen_k dq dk dv "
    "softmax_scale is_causal window_size_left window_size_right softcap deterministic",
)
def flash_attn_3_python_backward(args: Arguments) -> Work:
    """As flash_attn_3::bwd, with the lengths before the results."""
    refuse_packed(args, 6, 7, 8, 9)
    return backward(args, length_first, window=(16, 17, 18))


@cost_model(
    "xformers::efficient_attention_forward_cutlass",
    family="attention_fwd",
    matrix=True,
    params="q k v bias seqstart_q seqstart_k",
)
def xformers_cutlass(args: Arguments) -> Work:
    """As torch's _efficient_attention_forward, which came from here: the tenth argument is the number for
    the mask (1 causal from the top left, 2 from the bottom right).  The log-sum-exp is asked for after it,
    in earlier releases before it.  Releases without a number for the mask and windows are unknown."""
    mask = _MASKS.get(args.integer(9) or 0, "")
    late = args.flag(10) is not None
    seqlen, window = (12, 13) if late else (11, 12)
    if len(args) < 11 or mask == "" or args.integer(window):
        raise Unknown("mask_unknown")
    refuse_packed(args, 4, 5, seqlen)
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = length_first(q, k, v)
    pairs = kept_pairs(sizes.queries, sizes.keys, causal=mask)
    return forward(q, k, v, sizes, pairs, args.maybe(3), args.flag(10 if late else 8) is True)


@cost_model(
    "xformers::efficient_attention_backward_cutlass",
    family="attention_bwd",
    matrix=True,
    params="dO q k v bias",
)
def xformers_cutlass_backward(args: Arguments) -> Work:
    """As torch's _efficient_attention_backward; earlier releases have the lengths before O and lse."""
    mask = _MASKS.get(args.integer(14) or 0, "")
    last = args.maybe(10)
    early = last is not None and len(last.dims) == 4
    window = 17 if early else 18
    if mask == "" or args.integer(window):
        raise Unknown("mask_unknown")
    refuse_packed(args, *((5, 6) if early else (6, 7)))
    out, lse = (10, 9) if early else (5, 10)
    wanted = not early and args.flag(15) is True
    bias = args.maybe(4)
    grad_bias = bias if wanted else None
    return backward(args, length_first, causal=mask, bias=bias, out=out, lse=lse, grad_bias=grad_bias)


@cost_model(
    "xformers_flash::flash_fwd",
    family="attention_fwd",
    matrix=True,
    params="q k v cu_seqlens_q cu_seqlens_k seqused_k max_seqlen_q max_seqlen_k p softmax_scale is_causal "
    "window_left window_right return_softmax block_tables",
)
def xformers_flash(args: Arguments) -> Work:
    """As the flash-attn library, which it calls."""
    refuse_packed(args, 3, 4, 5, 14)
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = length_first(q, k, v)
    return forward(q, k, v, sizes, window_pairs(args, sizes, 10, 11, 12), None, lse=True)


@cost_model(
    "aiter::mha_fwd",
    "aiter::wrapper_mha_fwd",
    "aiter::fmha_v3_fwd",
    "aiter::wrapper_fmha_v3_fwd",
    family="attention_fwd",
    matrix=True,
    params="q k v dropout_p softmax_scale is_causal window_size_left window_size_right",
)
def aiter_forward(args: Arguments) -> Work:
    """As the flash-attn library, on AMD; the log-sum-exp is written when its flag is set."""
    q, k, v = (args.tensor(i) for i in range(3))
    sizes = length_first(q, k, v)
    # Later releases have a count of sink tokens before the flag.
    flags = [f for f in (args.flag(8), args.flag(9)) if f is not None]
    pairs = window_pairs(args, sizes, 5, 6, 7)
    return forward(q, k, v, sizes, pairs, None, lse=flags[:1] == [True])


@cost_model(
    "aiter::mha_bwd",
    "aiter::wrapper_mha_bwd",
    "aiter::fmha_v3_bwd",
    "aiter::wrapper_fmha_v3_bwd",
    family="attention_bwd",
    matrix=True,
    params="dO q k v O lse dropout_p softmax_scale is_causal window_size_left window_size_right",
)
def aiter_backward(args: Arguments) -> Work:
    """As the flash backward, on AMD."""
    return backward(args, length_first, window=(8, 9, 10))


@cost_model("_C::merge_attn_states", family="attention_aux", params="result result_lse a a_lse b b_lse")
def merge_states(args: Arguments) -> Work:
    """Two partial results weighed by their log-sum-exps: 3 FLOPs per element (two products, a sum).  Only
    these of the arguments are read; how many tokens it is for may be a value."""
    if args.integer(6) is not None:
        raise Unknown("lengths_are_values")
    parts = [args.tensor(i) for i in (2, 3, 4, 5)]
    out, lse = args.tensor(0), args.maybe(1)
    written = pieces(out.like(), None if lse is None else lse.like())
    return Work(3 * out.numel, pieces(parts, args.maybe(7)), written, out.dtype)


@cost_model("flashinfer::merge_state", family="attention_aux", params="a a_lse b b_lse")
def merge_new(args: Arguments) -> Work:
    """As merge_attn_states, into new results."""
    a, a_lse, b, b_lse = (args.tensor(i) for i in range(4))
    return Work(3 * a.numel, pieces(a, a_lse, b, b_lse), pieces(a.like(), a_lse.like()), a.dtype)


@cost_model(
    "sgl_kernel::merge_state",
    "sgl_kernel::merge_state_v2",
    family="attention_aux",
    params="a a_lse b b_lse result result_lse",
)
def merge_states_last(args: Arguments) -> Work:
    """As merge_attn_states, with the results last."""
    parts, (out, lse) = [args.tensor(i) for i in range(4)], (args.tensor(4), args.tensor(5))
    return Work(3 * out.numel, pieces(parts), pieces(out.like(), lse.like()), out.dtype)
