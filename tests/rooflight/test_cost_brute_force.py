"""FLOPs and bytes against counting: multiply-adds are enumerated, touched offsets are put in sets."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.cost import OpCall, estimate
from rooflight.cost.attention import BOTTOM_RIGHT, TOP_LEFT, kept_pairs
from rooflight.cost.pool import pooled, touched
from rooflight.cost.tensor import distinct_offsets

SIZE = {"float": 4, "c10::BFloat16": 2, "double": 8, "bool": 1, "c10::Half": 2}
TYPES = st.sampled_from(["float", "c10::BFloat16", "double"])
dims = st.integers(1, 4)
few = settings(max_examples=60, deadline=None)


def every(*sizes: int) -> Any:
    return itertools.product(*(range(n) for n in sizes))


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> set[int]:
    """The offsets that a view of these strides touches."""
    return {sum(i * s for i, s in zip(index, strides, strict=True)) for index in every(*shape)}


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return tuple(reversed(steps))


@st.composite
def strides_of(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Dense strides in some order of the dims, some dims expanded, some with gaps."""
    order = draw(st.permutations(range(len(shape))))
    steps, step = [0] * len(shape), draw(st.sampled_from([1, 1, 2]))
    for axis in order:
        steps[axis] = 0 if draw(st.integers(0, 4)) == 0 else step
        step *= shape[axis] if steps[axis] else 1
    return tuple(steps)


def event(op: str, tensors: list[tuple[Any, str, Any]], scalars: tuple[str, ...] = ()) -> OpCall:
    """``tensors`` are (dims, type, strides); ``scalars`` follow them."""
    n = len(scalars)
    return OpCall(
        op,
        (*(list(d) for d, _, _ in tensors), *([[]] * n)),
        (*(t for _, t, _ in tensors), *("ScalarList" if s.startswith("[") else "Scalar" for s in scalars)),
        (*(list(s) for _, _, s in tensors), *([[]] * n)),
        (*("" for _ in tensors), *scalars),
    )


@few
@given(st.data(), st.integers(0, 3), dims, dims, dims, TYPES)
def test_gemm(data: Any, b: int, m: int, n: int, k: int, dtype: str) -> None:
    shapes = [(b, m, k), (b, k, n)] if b else [(m, k), (k, n)]
    strides = [data.draw(strides_of(s)) for s in shapes]
    cost = estimate(
        event("aten::bmm" if b else "aten::mm", list(zip(shapes, [dtype] * 2, strides, strict=True)))
    )
    macs = sum(1 for _ in every(max(b, 1), m, n, k))
    assert cost.flops == 2 * macs
    read = sum(len(offsets(s, t)) for s, t in zip(shapes, strides, strict=True))
    assert cost.bytes_read == SIZE[dtype] * read
    assert cost.bytes_written == SIZE[dtype] * len(set(every(max(b, 1), m, n)))


@few
@given(
    st.data(),
    st.lists(dims, min_size=0, max_size=2),
    st.lists(dims, min_size=0, max_size=2),
    dims,
    dims,
    dims,
)
def test_matmul_broadcasts(data: Any, left: list[int], right: list[int], m: int, n: int, k: int) -> None:
    batch = [data.draw(dims) for _ in range(max(len(left), len(right)))]
    left = [data.draw(st.sampled_from([1, x])) for x in batch[len(batch) - len(left) :]]
    right = [data.draw(st.sampled_from([1, x])) for x in batch[len(batch) - len(right) :]]
    out = [1] * len(batch)
    for side in (left, right):
        for i, x in enumerate(reversed(side)):
            out[-1 - i] = max(out[-1 - i], x)
    a, b = (*left, m, k), (*right, k, n)
    cost = estimate(event("aten::matmul", [(a, "float", dense(a)), (b, "float", dense(b))]))
    assert cost.flops == 2 * sum(1 for _ in every(*out, m, n, k))
    assert cost.bytes_written == 4 * sum(1 for _ in every(*out, m, n))


def walk_convolution(
    x: tuple[int, ...], w: tuple[int, ...], stride: int, pad: int, dilation: int, groups: int
) -> tuple[int, set[tuple[int, ...]]]:
    """Multiply-adds, taps on the padding among them, and the positions of the result (2-D)."""
    n, _, height, width = x
    cout, cin, kh, kw = w
    results: set[tuple[int, ...]] = set()
    macs = 0
    for b in range(n):
        for top in range(-pad, height + pad - dilation * (kh - 1), stride):
            for left in range(-pad, width + pad - dilation * (kw - 1), stride):
                for g, c in every(groups, cout // groups):
                    results.add((b, g * (cout // groups) + c, top, left))
                    macs += sum(1 for _ in every(cin, kh, kw))
    return macs, results


conv_shapes = st.tuples(dims, st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(3, 7))
conv_rest = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))


@few
@given(conv_shapes, conv_rest)
def test_convolution(shape: tuple[int, ...], rest: tuple[int, ...]) -> None:
    n, groups, cin, cout, size = shape
    kernel, stride, pad, dilation = rest
    x, w = (n, groups * cin, size, size), (groups * cout, cin, kernel, kernel)
    if size + 2 * pad < dilation * (kernel - 1) + 1:
        return
    macs, results = walk_convolution(x, w, stride, pad, dilation, groups)
    pairs = [f"[{v}, {v}]" for v in (stride, pad, dilation)]
    call = event(
        "aten::convolution",
        [(x, "float", dense(x)), (w, "float", dense(w)), ((groups * cout,), "float", (1,))],
        (*pairs, "False", "[0, 0]", str(groups)),
    )
    cost = estimate(call)
    assert cost.flops == 2 * macs
    elements = len(offsets(x, dense(x))) + len(offsets(w, dense(w))) + groups * cout
    assert (cost.bytes_read, cost.bytes_written) == (4 * elements, 4 * len(results))
    own_order = event(
        "aten::cudnn_convolution",
        [(x, "float", dense(x)), (w, "float", dense(w))],
        (pairs[1], pairs[0], pairs[2], str(groups), "False", "False", "True"),
    )
    assert estimate(own_order).flops == 2 * macs


@few
@given(conv_shapes, conv_rest)
def test_transposed_convolution(shape: tuple[int, ...], rest: tuple[int, ...]) -> None:
    n, groups, cin, cout, size = shape
    kernel, stride, pad, dilation = rest
    x, w = (n, groups * cin, size, size), (groups * cin, cout, kernel, kernel)
    # Every input element is scattered through its taps into the output channels of its group.
    macs = sum(1 for _ in every(*x, cout, kernel, kernel))
    reach = {i * stride + t * dilation for i in range(size) for t in range(kernel)}
    side = max(reach) + 1 - 2 * pad
    if side < 1:
        return
    pairs = [f"[{v}, {v}]" for v in (stride, pad, dilation)]
    cost = estimate(
        event(
            "aten::cudnn_convolution_transpose",
            [(x, "float", dense(x)), (w, "float", dense(w))],
            (pairs[1], "[0, 0]", pairs[0], pairs[2], str(groups), "False", "False", "True"),
        )
    )
    assert cost.flops == 2 * macs
    assert cost.bytes_written == 4 * n * groups * cout * side * side


@few
@given(conv_shapes, conv_rest, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_convolution_backward(shape: tuple[int, ...], rest: tuple[int, ...], mask: tuple[bool, ...]) -> None:
    n, groups, cin, cout, size = shape
    kernel, stride, pad, dilation = rest
    x, w = (n, groups * cin, size, size), (groups * cout, cin, kernel, kernel)
    if size + 2 * pad < dilation * (kernel - 1) + 1 or not any(mask):
        return
    macs, results = walk_convolution(x, w, stride, pad, dilation, groups)
    rows = len({top for _, _, top, _ in results})
    dy = (n, groups * cout, rows, rows)
    pairs = [f"[{v}, {v}]" for v in (stride, pad, dilation)]
    cost = estimate(
        event(
            "aten::convolution_backward",
            [(t, "float", dense(t)) for t in (dy, x, w)],
            (f"[{groups * cout}]", *pairs, "False", "[0, 0]", str(groups), str(list(mask))),
        )
    )
    nx, nw, ny = (sum(1 for _ in every(*t)) for t in (x, w, dy))
    assert cost.flops == 2 * macs * (mask[0] + mask[1])
    assert cost.bytes_read == 4 * (ny + nw * mask[0] + nx * mask[1])
    assert cost.bytes_written == 4 * (nx * mask[0] + nw * mask[1] + groups * cout * mask[2])


@few
@given(conv_shapes, conv_rest, st.integers(0, 1), st.data())
def test_transposed_convolution_and_its_gradients(
    shape: tuple[int, ...], rest: tuple[int, ...], extra: int, data: Any
) -> None:
    """aten's own op, of sides that differ and an input in any layout.  Each multiply-add of the forward
    pass is one of the input's gradient and one of the weight's."""
    n, groups, cin, cout, size = shape
    kernel, stride, pad, dilation = rest
    x, w = (n, groups * cin, size, size + 1), (groups * cin, cout, kernel, 1)
    macs = sum(1 for _ in every(*x, cout, kernel, 1))
    reach = max(i * stride + t * dilation for i in range(size) for t in range(kernel))
    sides = (reach + 1 - 2 * pad + extra, size * stride + 1 + extra)
    if sides[0] < 1:
        return
    dy = (n, groups * cout, *sides)
    steps = data.draw(strides_of(x))
    geometry = (f"[{stride}, {stride}]", f"[{pad}, 0]", f"[{dilation}, {dilation}]", "True")
    geometry += (f"[{extra}, {extra}]", str(groups))
    tensors = [(x, "float", steps), (w, "float", dense(w)), ((groups * cout,), "float", (1,))]
    cost = estimate(event("aten::convolution", tensors, geometry))
    read = len(offsets(x, steps)) + sum(1 for _ in every(*w)) + groups * cout
    assert (cost.flops, cost.bytes_read) == (2 * macs, 4 * read)
    assert cost.bytes_written == 4 * sum(1 for _ in every(*dy))
    tensors = [(dy, "float", dense(dy)), (x, "float", steps), (w, "float", dense(w))]
    back = estimate(event("aten::convolution_backward", tensors, ("[0]", *geometry, "[True, True, False]")))
    assert back.flops == 2 * macs + 2 * macs
    assert back.bytes_written == 4 * (sum(1 for _ in every(*x)) + sum(1 for _ in every(*w)))


def walk_mask(sq: int, sk: int, causal: str | None, left: int | None, right: int | None) -> int:
    shift = 0 if causal == TOP_LEFT else sk - sq
    kept = 0
    for i, j in every(sq, sk):
        inside = left is None or j >= i + shift - left
        behind = 0 if causal else right
        kept += inside and (behind is None or j <= i + shift + behind)
    return kept


windows = st.one_of(st.none(), st.integers(0, 6))


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 9), st.integers(0, 9), st.sampled_from([None, TOP_LEFT, BOTTOM_RIGHT]), windows, windows
)
def test_kept_pairs(sq: int, sk: int, causal: str | None, left: int | None, right: int | None) -> None:
    assert kept_pairs(sq, sk, causal=causal, left=left, right=right) == walk_mask(sq, sk, causal, left, right)


@few
@given(dims, dims, st.integers(1, 3), st.integers(1, 7), st.integers(1, 7), dims, dims, st.booleans())
def test_attention(b: int, hk: int, share: int, sq: int, sk: int, qk: int, v: int, causal: bool) -> None:
    """Grouped queries: ``share`` query heads use each key head."""
    q, k, val = (b, hk * share, sq, qk), (b, hk, sk, qk), (b, hk, sk, v)
    call = event(
        "aten::_scaled_dot_product_flash_attention",
        [(t, "c10::BFloat16", dense(t)) for t in (q, k, val)],
        ("0.", str(causal), "False", ""),
    )
    cost = estimate(call)
    pairs = sum(1 for i, j in every(sq, sk) if j <= i or not causal)
    macs = b * hk * share * pairs * (qk + v)
    assert cost.flops == 2 * macs
    assert cost.bytes_read == 2 * sum(len(offsets(t, dense(t))) for t in (q, k, val))
    rows = b * hk * share * sq
    assert cost.bytes_written == 2 * rows * v + 4 * rows


@few
@given(dims, dims, st.integers(1, 3), st.integers(1, 7), dims, dims, st.booleans())
def test_attention_backward(b: int, hk: int, share: int, s: int, qk: int, v: int, causal: bool) -> None:
    """Five products per kept pair: scores again and dQ, dK over the query-key dim, dP and dV over v."""
    q, k, val, out = (b, hk * share, s, qk), (b, hk, s, qk), (b, hk, s, v), (b, hk * share, s, v)
    lse = (b, hk * share, s)
    tensors = [(t, "c10::Half", dense(t)) for t in (out, q, k, val, out)] + [(lse, "float", dense(lse))]
    call = OpCall(
        "aten::_scaled_dot_product_flash_attention_backward",
        (*(list(t) for t, _, _ in tensors), *([[]] * 9)),
        (*(t for _, t, _ in tensors), "", "", *["Scalar"] * 4, "long int", "long int", ""),
        (),
        (*[""] * 8, str(s), str(s), "0.", str(causal), "", "", ""),
    )
    cost = estimate(call)
    pairs = sum(1 for i, j in every(s, s) if j <= i or not causal)
    assert cost.flops == sum(2 * b * hk * share * pairs * width for width in (qk, v, v, qk, qk))
    sizes = [sum(1 for _ in every(*t)) for t in (out, q, k, val, out)]
    assert cost.bytes_read == 2 * sum(sizes) + 4 * b * hk * share * s
    assert cost.bytes_written == 2 * sum(sizes[1:4])


sides = st.one_of(st.just(-1), st.integers(0, 5))


@few
@given(dims, dims, st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), dims, st.booleans(), sides, sides)
def test_windowed_attention_and_its_gradients(
    b: int, hk: int, share: int, sq: int, sk: int, d: int, causal: bool, left: int, right: int
) -> None:
    """The flash-attn library: [batch, length, heads, dim], masks from the bottom right, -1 an open side."""
    kept = 0
    for i, j in every(sq, sk):
        diagonal = i + sk - sq
        behind = 0 if causal else right
        kept += (left < 0 or j >= diagonal - left) and (behind < 0 or j <= diagonal + behind)
    q, k, lse = (b, sq, hk * share, d), (b, sk, hk, d), (b, hk * share, sq)
    half = [(t, "c10::Half", dense(t)) for t in (q, k, k)]
    mask = ("0.", "1.", str(causal), str(left), str(right), "0.")
    cost = estimate(event("flash_attn::_flash_attn_forward", half, mask))
    product = 2 * b * hk * share * kept * d
    assert cost.flops == product + product
    rows = b * hk * share * sq
    nq, nk = (sum(1 for _ in every(*t)) for t in (q, k))
    assert (cost.bytes_read, cost.bytes_written) == (2 * (nq + nk + nk), 2 * nq + 4 * rows)
    saved = [(q, "c10::Half", dense(q)), *half, (q, "c10::Half", dense(q)), (lse, "float", dense(lse))]
    back = estimate(event("flash_attn::_flash_attn_backward", saved + half, mask))
    assert back.flops == 5 * product
    assert back.bytes_read == 2 * (3 * nq + nk + nk) + 4 * rows
    assert back.bytes_written == 2 * (nq + nk + nk)


@few
@given(st.data(), dims, dims, st.integers(1, 3), st.sampled_from(["add", "mul", "maximum", "eq"]))
def test_elementwise_over_windows(data: Any, n: int, m: int, step: int, op: str) -> None:
    """Rows that start ``step`` elements apart overlap: what they share is read once."""
    types = [data.draw(TYPES) for _ in range(2)]
    views = [((n, m), types[0], (step, 1)), ((n, 1), types[1], (data.draw(st.integers(0, 3)), 1))]
    cost = estimate(event(f"aten::{op}", views, ("1",) if op == "add" else ()))
    assert cost.flops == sum(1 for _ in every(n, m))
    assert cost.bytes_read == sum(SIZE[t] * len(offsets(d, s)) for d, t, s in views)
    wide = 1 if op == "eq" else max(SIZE[t] for t in types)  # of these three the wider holds both
    assert cost.bytes_written == wide * n * m


@few
@given(st.data(), st.lists(dims, min_size=1, max_size=3), st.booleans())
def test_elementwise(data: Any, shape: list[int], doubled: bool) -> None:
    operands = []
    for _ in range(2):
        own = tuple(data.draw(st.sampled_from([1, n])) for n in shape)
        own = own[data.draw(st.integers(0, len(own) - 1)) :]
        operands.append((own, "float", data.draw(strides_of(own))))
    cost = estimate(event("aten::add", operands, ("2" if doubled else "1",)))
    grids = [[1] * (len(shape) - len(d)) + list(d) for d, _, _ in operands]
    out = [max(pair) for pair in zip(*grids, strict=True)]
    n = sum(1 for _ in every(*out))
    assert cost.flops == n * (2 if doubled else 1)
    assert cost.bytes_read == 4 * sum(len(offsets(d, s)) for d, _, s in operands)
    assert cost.bytes_written == 4 * n


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=4))
def test_distinct_offsets(axes: list[tuple[int, int]]) -> None:
    shape, strides = tuple(n for n, _ in axes), tuple(s for _, s in axes)
    assert distinct_offsets(shape, strides) == len(offsets(shape, strides))


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 2),
    st.integers(1, 2),
    st.booleans(),
)
def test_pooling_windows(size: int, kernel: int, stride: int, pad: int, dilation: int, ceil: bool) -> None:
    if pad > kernel // 2 or size + 2 * pad < dilation * (kernel - 1) + 1:
        return
    reach = dilation * (kernel - 1)
    starts = [s for s in range(-pad, size + pad, stride) if s + reach < size + pad]
    if ceil and starts[-1] + reach != size + pad - 1 and starts[-1] + stride < size:
        starts.append(starts[-1] + stride)
    n = pooled(size, kernel, stride, pad, dilation, ceil)
    assert n == len(starts)
    covered = {s + t * dilation for s in starts for t in range(kernel)} & set(range(size))
    assert touched(size, n, kernel, stride, pad, dilation) == len(covered)


@pytest.mark.parametrize(("causal", "pairs"), [(TOP_LEFT, 1 + 2 + 3), (BOTTOM_RIGHT, 4 + 5 + 6)])
def test_where_a_rectangular_causal_mask_is_anchored(causal: str, pairs: int) -> None:
    assert kept_pairs(3, 6, causal=causal) == pairs
