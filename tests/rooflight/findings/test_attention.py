"""Attention that writes its scores.  H100 SXM: memory 3.015 TB/s.  All times are us."""

from __future__ import annotations

import pytest

from rooflight.protocol import Finding
from tests.recording import Recording
from tests.rooflight.findings.scenes import memory_us

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128"
BF16 = "c10::BFloat16"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def ops_of(scene: Recording, finding: Finding) -> list[str | None]:
    """The ops of the kernels that a finding points at."""
    kernels = scene.rank().kernels
    return [kernels[i].op for e in finding.evidence for i in e.kernels]


SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
SCORES = [8, 1024, 1024]
FIRST = [[8, 1024, 64], [8, 64, 1024]]
LAST = [SCORES, [8, 1024, 64]]


def attention(
    *,
    between: str = ADD,
    softmax: tuple[str, list[int]] = ("aten::_softmax", SCORES),
    last: list[list[int]] = LAST,
    product: float = 100,
    stream: int = 7,
) -> Recording:
    """Two products of so many us in bf16; between them a scale of 40 and a softmax of 50."""
    scene = Recording().step(0, 0, 1000)
    scene.op("aten::bmm", 0, FIRST, BF16).kernel(GEMM, 1, 2, product)
    scene.op("aten::mul", 10, [SCORES, []], BF16).kernel(between, 11, 2 + product, 40)
    scene.op(softmax[0], 20, [softmax[1], [], []], BF16).kernel(SOFTMAX, 21, 42 + product, 50)
    scene.op("aten::bmm", 30, last, BF16).kernel(GEMM, 31, 92 + product, product, stream=stream)
    return scene.kernel("other", 40, 200 + 2 * product, 100)


@pytest.mark.parametrize("op", ["aten::_softmax", "aten::_softmax_backward_data"])
def test_materialised_attention(op: str) -> None:
    """Scale and softmax go, 90; the scores, 8 x 1024 x 1024 of 2 B, are not written, not read: 5.56 each."""
    scene = attention(softmax=(op, SCORES))
    found = scene.findings()["materialised-attention"]
    assert found.saving_us == pytest.approx(90 + 2 * memory_us(2 * 8 * 1024 * 1024), abs=0.01)
    assert (
        shown(found) == f"aten::bmm → {op} [8, 1024, 1024] → aten::bmm: 1 per step, up to 0.101 ms per step"
    )
    assert set(ops_of(scene, found)) == {"aten::bmm", op}


def test_products_still_take_the_time_of_their_flops() -> None:
    """Each product has 2 x 8 x 1024 x 1024 x 64 FLOPs: 1.36 us of 989.4 x 0.796 TFLOP/s.  Of 5 us no more
    than the rest can go, though the scores would take 5.56."""
    rest = 5 - 1_073_741_824 / (989.4e12 * 0.796) * 1e6
    found = attention(product=5).findings()["materialised-attention"]
    assert found.saving_us == pytest.approx(90 + 2 * rest, abs=0.01)


@pytest.mark.parametrize(
    "scene",
    [
        attention(softmax=("aten::_softmax", [8, 1024, 512])),  # of something else
        attention(last=[[8, 1024, 512], [8, 512, 64]]),  # the second product takes something else
        attention(between=NORM),  # not only elementwise kernels in between
        attention(stream=9),  # the second product is on another stream
    ],
    ids=["softmax", "product", "between", "stream"],
)
def test_no_materialised_attention(scene: Recording) -> None:
    assert "materialised-attention" not in scene.findings()


def decoding(queries: int, keys: int, *, steps: int = 2) -> Recording:
    """32 heads of 128 in bf16: both products of 60 us and a softmax of 20 once in each step of 200."""
    scene = Recording()
    for n in range(steps):
        at = 200 * n
        scene.step(n, at, 200)
        scene.op("aten::bmm", at, [[32, queries, 128], [32, 128, keys]], BF16).kernel(GEMM, at, at, 60)
        scores = [1, 32, queries, keys]
        scene.op("aten::_softmax", at + 10, [scores, [], []], BF16).kernel(SOFTMAX, at + 10, at + 60, 20)
        factors = [[32, queries, keys], [32, keys, 128]]
        scene.op("aten::bmm", at + 20, factors, BF16).kernel(GEMM, at + 20, at + 80, 60)
    return scene


def test_one_query_over_a_cache_in_single_kernels() -> None:
    """Keys and values of 32 x 8192 x 128 numbers of 2 B: 0.134 GB of a step; 120 of 200 us."""
    found = decoding(1, 8192).findings()["kv-cache-reads"]
    assert shown(found) == "0.12 ms per step, 60 %; read 0.134 GB per step of keys and values"
    assert found.saving_us is None


@pytest.mark.parametrize("scene", [decoding(2, 8192), decoding(1, 1)], ids=["two queries", "one key"])
def test_more_queries_or_no_past_read_no_cache(scene: Recording) -> None:
    assert "kv-cache-reads" not in scene.findings()
