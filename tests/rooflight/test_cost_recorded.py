"""Calls that torch runs and records here: what is written is as large as what torch returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooflight.cost import OpCall, estimate

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.torch

A, F, r, bf16 = torch.ops.aten, torch.nn.functional, torch.randn, torch.bfloat16
WHOLE = torch.arange(64)
ONES = torch.ones(16)

CALLS: list[tuple[str, Callable[[], Any]]] = [
    ("aten::mul", lambda: r(4, 8, dtype=bf16) * 2.0),
    ("aten::mul", lambda: WHOLE * 2.0),
    ("aten::mul", lambda: r(4) * torch.tensor(2.0, dtype=torch.float64)),
    ("aten::add", lambda: r(4, dtype=torch.half) + r(4, dtype=bf16)),
    ("aten::add", lambda: torch.ones(4, dtype=torch.bool) + 1.5),
    ("aten::rsub", lambda: 1 - r(5)),
    ("aten::div", lambda: WHOLE / WHOLE),
    ("aten::div", lambda: torch.div(WHOLE, 3, rounding_mode="floor")),
    ("aten::pow", lambda: WHOLE**0.5),
    ("aten::abs", lambda: r(4, dtype=torch.complex64).abs()),
    ("aten::where", lambda: torch.where(r(4, 4) > 0, 1.0, 2.0)),
    ("aten::clamp", lambda: r(4, 3).clamp(min=torch.zeros(3))),
    ("aten::sum", lambda: WHOLE.int().sum()),
    ("aten::sum", lambda: r(0, 4).sum(0)),
    ("aten::mean", lambda: r(3, 4, dtype=bf16).mean(-1, dtype=torch.float32)),
    ("aten::max", lambda: r(3, 4).max(0, keepdim=True)),
    ("aten::max", lambda: torch.max(r(3, 4), r(4))),
    ("aten::var", lambda: r(3, 4).var(1, unbiased=False)),
    ("aten::var_mean", lambda: torch.var_mean(r(3, 4), 1)),
    ("aten::aminmax", lambda: r(3, 5).aminmax(dim=1)),
    ("aten::cumsum", lambda: torch.ones(5, dtype=torch.bool).cumsum(0)),
    ("aten::topk", lambda: r(3, 50).topk(5)),
    ("aten::kthvalue", lambda: r(3, 50).kthvalue(3)),
    ("aten::matmul", lambda: r(2, 1, 4, 5) @ r(3, 5, 6)),
    ("aten::matmul", lambda: r(4) @ r(3, 4, 5)),
    ("aten::addmm", lambda: torch.addmm(r(4, 6), r(4, 5), r(5, 6), beta=0.5)),
    ("aten::tensordot", lambda: torch.tensordot(r(3, 4, 2), r(2, 4, 5), dims=([1, 2], [1, 0]))),
    ("aten::conv2d", lambda: F.conv2d(r(2, 3, 9, 9), r(4, 3, 3, 3), padding="same", dilation=2)),
    ("aten::convolution", lambda: F.conv2d(r(2, 3, 9, 8), r(4, 3, 3, 3), stride=(2, 1), padding=(1, 0))),
    ("aten::conv_transpose2d", lambda: F.conv_transpose2d(r(2, 4, 5, 5), r(4, 3, 3, 3), None, 2, 1, 1, 2)),
    ("aten::mkldnn_convolution", lambda: F.conv2d(r(2, 3, 9, 9), r(4, 3, 3, 3), r(4), 2, 1)),
    ("aten::native_layer_norm", lambda: A.native_layer_norm(r(3, 4, 5), [4, 5], r(4, 5), None, 1e-5)),
    (
        "aten::native_batch_norm",
        lambda: A.native_batch_norm(r(4, 16, 8), None, None, None, None, True, 0.1, 1e-5),
    ),
    ("aten::native_group_norm", lambda: A.native_group_norm(r(4, 16, 8, 8), ONES, ONES, 4, 16, 64, 8, 1e-5)),
    ("aten::_fused_rms_norm", lambda: A._fused_rms_norm(r(3, 4, 5), [5], r(5), 1e-5)),
    ("aten::softmax", lambda: F.softmax(r(3, 5, dtype=bf16), 1, dtype=torch.float32)),
    (
        "aten::max_pool2d_with_indices",
        lambda: A.max_pool2d_with_indices(r(2, 3, 9, 9), [3], [2], [1], [1], True),
    ),
    ("aten::avg_pool2d", lambda: F.avg_pool2d(r(2, 3, 9, 9), 3, ceil_mode=True)),
    ("aten::upsample_bilinear2d", lambda: F.interpolate(r(2, 3, 8, 8), scale_factor=1.5, mode="bilinear")),
    ("aten::nll_loss_forward", lambda: A.nll_loss_forward(r(5, 7), WHOLE[:5], None, 0, -100)),
    (
        "aten::embedding_dense_backward",
        lambda: A.embedding_dense_backward(r(64, 5), WHOLE % 10, 10, -1, False),
    ),
    ("aten::gather", lambda: r(5, 6).gather(1, torch.zeros(5, 2, dtype=torch.long))),
    ("aten::native_dropout", lambda: A.native_dropout(r(5, 6), 0.5, True)),
    ("aten::_fft_r2c", lambda: torch.fft.rfft(r(4, 10))),
    ("aten::_fft_c2r", lambda: torch.fft.irfft(r(4, 10, dtype=torch.complex64))),
    ("aten::constant_pad_nd", lambda: F.pad(r(4, 4), (1, 2, 0, 3))),
    ("aten::repeat", lambda: r(4, 5).repeat(2, 1, 3)),
    ("aten::full", lambda: torch.full((3, 4), True)),
    ("aten::arange", lambda: torch.arange(1, 10, 2.0)),
    ("aten::randint", lambda: torch.randint(0, 5, (3, 4))),
    ("aten::_to_copy", lambda: r(3, 4).to(torch.float64)),
    ("aten::histc", lambda: r(50).histc(7)),
    # Results whose type is not the operand's: complex numbers have real norms and deviations, whole numbers
    # real angles, and a Python number counts by its kind alone.
    ("aten::linalg_vector_norm", lambda: torch.linalg.vector_norm(r(4, 6, dtype=torch.complex64), dim=1)),
    ("aten::norm", lambda: A.norm(r(5, 10, dtype=torch.complex64), 2.0, [1])),
    ("aten::std", lambda: r(4, 6, dtype=torch.complex64).std(dim=0)),
    ("aten::var_mean", lambda: torch.var_mean(r(4, 6, dtype=torch.complex64), dim=0)),
    ("aten::angle", WHOLE.angle),
    ("aten::copysign", lambda: torch.copysign(WHOLE, WHOLE)),
    ("aten::xlogy", lambda: torch.xlogy(WHOLE, WHOLE)),
    ("aten::mul", lambda: r(7, dtype=torch.float64) * 2j),
    ("aten::mul", lambda: r(7, dtype=bf16) * 2j),
    ("aten::mul", lambda: r(7, dtype=torch.float64) * torch.tensor(1j)),
    ("aten::add", lambda: torch.tensor(3) + 0.5),
    ("aten::index_select", lambda: torch.tensor(2.0).index_select(0, torch.tensor([0]))),
    ("aten::topk", lambda: torch.tensor(2.0).topk(1)),
    ("aten::native_group_norm", lambda: A.native_group_norm(r(0, 4, 3), None, None, 0, 4, 3, 2, 1e-5)),
    ("aten::arange", lambda: torch.arange(2, 9, 2, out=torch.empty(0, dtype=torch.int32))),
    ("aten::eye", lambda: torch.eye(3, 5, out=torch.empty(0, dtype=bf16))),
    ("aten::scalar_tensor", lambda: A.scalar_tensor(2, dtype=torch.float64)),
    ("aten::multinomial", lambda: torch.ones(3, 8).multinomial(5)),
    ("aten::complex", lambda: torch.complex(r(5), r(5))),
    ("aten::im2col", lambda: F.unfold(r(2, 3, 9, 8), (3, 2), dilation=2, padding=1, stride=(2, 1))),
    ("aten::col2im", lambda: F.fold(r(2, 18, 12), (5, 6), (3, 3), stride=1)),
    ("aten::max_unpool2d", lambda: F.max_unpool2d(r(1, 2, 3, 3), WHOLE[:18].reshape(1, 2, 3, 3) % 9, 2)),
    ("aten::grid_sampler_2d", lambda: F.grid_sample(r(2, 3, 8, 8), r(2, 5, 6, 2), align_corners=False)),
    ("aten::unfold_backward", lambda: A.unfold_backward(r(3, 4), [9], 0, 4, 2)),
    ("aten::_prelu_kernel_backward", lambda: A._prelu_kernel_backward(r(3, 4), r(3, 4), r(1, 4))),
    (
        "aten::slow_conv_transpose2d",
        lambda: A.slow_conv_transpose2d(r(2, 4, 5, 6), r(4, 3, 3, 2), [3, 2], None, [2, 2], [1, 1], [1, 1]),
    ),
]

T32 = ONES.view(4, 4)
OUTER = ONES[:4, None] + ONES[:4]
MASK = OUTER > 1

# What is read, as a sum of elements times their size, from the tensors that are passed.
READS: list[tuple[str, Callable[[], Any], int]] = [
    # A Python number comes with the launch; a tensor without dims is one element.
    ("aten::mul", lambda: r(6, 8, dtype=bf16) * 2.0, 2 * 48),
    ("aten::add", lambda: WHOLE + 1, 8 * 64),
    ("aten::div", lambda: r(6) / 3, 4 * 6),
    ("aten::add_", lambda: r(6).add_(1), 4 * 6),
    ("aten::mul", lambda: r(6) * torch.tensor(2.0), 4 * 6 + 4),
    ("aten::add", lambda: torch.tensor(2) + torch.tensor(3), 8 + 8),
    ("aten::mul", lambda: r(6, 1).expand(6, 8) * r(8), 4 * (6 + 8)),
    ("aten::add", lambda: r(9).unfold(0, 4, 1) + r(4), 4 * (9 + 4)),
    ("aten::where", lambda: torch.where(MASK, T32, T32[:1]), 16 + 4 * 16 + 4 * 4),
    ("aten::logical_not", lambda: torch.logical_not(MASK, out=torch.empty_like(MASK)), 16),
    ("aten::sub", lambda: torch.sub(r(5), r(5), out=torch.empty(5)), 4 * (5 + 5)),
    ("aten::lerp", lambda: torch.lerp(r(5), r(5), r(5)), 4 * 15),
    ("aten::gelu_backward", lambda: A.gelu_backward(r(5), r(5)), 4 * 10),
    ("aten::copy_", lambda: torch.empty(4, 4, dtype=bf16).copy_(r(4)), 4 * 4),
    ("aten::fill", lambda: A.fill(r(5), 2.0), 0),
    ("aten::permute_copy", lambda: A.permute_copy(r(3, 4), [1, 0]), 4 * 12),
    ("aten::slice_scatter", lambda: torch.slice_scatter(r(8, 3), r(2, 3), 0, 1, 3), 4 * (24 + 6)),
    ("aten::index_fill", lambda: r(8, 3).index_fill(0, WHOLE[:2], 0.0), 4 * 24 + 8 * 2),
    ("aten::index_select", lambda: r(8, 3).index_select(0, WHOLE[:2]), 4 * 2 * 3 + 8 * 2),
    ("aten::put_", lambda: r(8).put_(WHOLE[:2], r(2)), 8 * 2 + 4 * 2),
    ("aten::trace", lambda: r(3, 5).trace(), 4 * 3),
    ("aten::_cdist_forward", lambda: torch.cdist(r(2, 4, 3), r(2, 5, 3)), 4 * (2 * 4 * 3 + 2 * 5 * 3)),
    ("aten::linspace", lambda: torch.linspace(torch.tensor(0.0), torch.tensor(1.0), 5), 4 + 4),
    ("aten::addmm_", lambda: r(3, 4).addmm_(r(3, 5), r(5, 4)), 4 * (12 + 15 + 20)),
    ("aten::baddbmm_", lambda: r(2, 3, 4).baddbmm_(r(2, 3, 5), r(2, 5, 4), beta=0), 4 * (30 + 40)),
    ("aten::max_unpool2d", lambda: F.max_unpool2d(r(1, 2, 2), WHOLE[:4].view(1, 2, 2), 2), (4 + 8) * 4),
    ("aten::isin", lambda: torch.isin(WHOLE, WHOLE[:3]), 8 * (64 + 3)),
    (
        "aten::reflection_pad1d_backward",
        lambda: A.reflection_pad1d_backward(r(2, 7), r(2, 4), [1, 2]),
        4 * 14,
    ),
    # x, weight, bias and the two running statistics of 4 channels.
    (
        "aten::_batch_norm_with_update",
        lambda: A._batch_norm_with_update(r(2, 4, 3), *(torch.ones(4) for _ in range(4)), 0.1, 1e-5),
        4 * (24 + 4 * 4),
    ),
]


def size_of(result: Any) -> int:
    if isinstance(result, torch.Tensor):
        return int(result.numel() * result.element_size())
    return sum(size_of(part) for part in result)


ALL = CALLS + [(name, run) for name, run, _ in READS]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[OpCall, int]]:
    """Each call's own row, and the bytes of what torch returned."""
    path: Path = tmp_path_factory.mktemp("recorded") / "trace.json"
    results = []
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profiler:
        for i, (_, run) in enumerate(ALL):
            with torch.profiler.record_function(f"call {i}"):
                results.append(size_of(run()))
    profiler.export_chrome_trace(str(path))
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]
    windows = {e["name"]: e for e in events if e["name"].startswith("call ")}
    return [(row_of(name, windows[f"call {i}"], events), results[i]) for i, (name, _) in enumerate(ALL)]


def row_of(name: str, window: dict[str, Any], events: list[dict[str, Any]]) -> OpCall:
    start, end = window["ts"], window["ts"] + window["dur"]
    row = next(e["args"] for e in events if e["name"] == name and start <= e["ts"] < end)
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    return OpCall(name, *(tuple(row[key]) for key in keys))


@pytest.mark.parametrize("i", range(len(CALLS)), ids=[f"{i}-{name}" for i, (name, _) in enumerate(CALLS)])
def test_what_is_written_is_what_torch_returns(i: int, recorded: list[tuple[OpCall, int]]) -> None:
    call, size = recorded[i]
    assert estimate(call).bytes_written == size


@pytest.mark.parametrize("i", range(len(READS)), ids=[name for name, _, _ in READS])
def test_what_is_read_is_what_the_tensors_hold(i: int, recorded: list[tuple[OpCall, int]]) -> None:
    call, _ = recorded[len(CALLS) + i]
    assert estimate(call).bytes_read == READS[i][2]


NAMES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
# A tensor without dims of these types cannot be told from a Python number.
NUMBERS = ("int64", "float64", "complex128")


@pytest.mark.parametrize("left", NAMES)
@pytest.mark.parametrize("right", NAMES)
@pytest.mark.parametrize("shape", [[3], []], ids=["tensor", "single"])
def test_promotion_is_torchs(left: str, right: str, shape: list[int]) -> None:
    if not shape and right in NUMBERS:
        other: Any = {"int64": 2, "float64": 2.0, "complex128": 2j}[right]
    else:
        other = torch.ones(shape, dtype=getattr(torch, right))
    size = torch.result_type(torch.ones(3, dtype=getattr(torch, left)), other).itemsize
    cost = estimate(OpCall("aten::mul", ([3], shape), (NAMES[left], NAMES[right]), ([1], shape and [1])))
    assert cost.bytes_written == 3 * size
