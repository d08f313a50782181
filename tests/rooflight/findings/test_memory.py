"""Lookups, weights and copies: bytes that are moved.  H100 SXM: memory 3.015 TB/s.  All times are us."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.protocol import Finding
from tests.recording import Recording

COPY = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(float)>"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128"
LOOKUP = "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int>"
BF16 = "c10::BFloat16"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def ops_of(scene: Recording, finding: Finding) -> list[str | None]:
    """The ops of the kernels that a finding points at."""
    kernels = scene.rank().kernels
    return [kernels[i].op for e in finding.evidence for i in e.kernels]


def looked_up(op: str, dur: float) -> Recording:
    """A lookup by the kernel of index_select inside another op, then a product until 1000."""
    scene = Recording().step(0, 0, 1000).host(op, 0, 9)
    scene.host("aten::index_select", 1, 6).kernel(LOOKUP, 2, 4, dur)
    return scene.kernel("gemm", 10, 4 + dur, 990 - dur)


def test_embedding_bound() -> None:
    """200 of 1000 are a fifth; what is looked up twice nobody knows."""
    scene = looked_up("aten::embedding", 200)
    found = scene.findings()["embedding-bound"]
    assert found.saving_us is None
    assert shown(found) == "0.2 ms per step, 20 %"
    assert ops_of(scene, found) == ["aten::index_select"]


def test_the_gradient_of_a_lookup_is_told_by_its_kernel() -> None:
    name = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>"
    scene = Recording().step(0, 0, 1000).kernel(name, 0, 1, 300).kernel("gemm", 2, 301, 699)
    assert shown(scene.findings()["embedding-bound"]) == "0.3 ms per step, 30 %"


@pytest.mark.parametrize(("op", "dur"), [("aten::embedding", 199.0), ("aten::gather_rows", 200.0)])
def test_no_embedding_bound(op: str, dur: float) -> None:
    """Too short; an index_select of something else."""
    assert "embedding-bound" not in looked_up(op, dur).findings()


def decoded(rows: int, dur: float, wall: float = 1000, op: str = "aten::mm") -> Recording:
    """[rows, 8192] x [8192, 8192] in bf16: 134,217,728 B of weights take 44.5 us of the memory."""
    left, right = [rows, 8192], [8192, 8192]
    dims: list[Any] = {
        "aten::mm": [left, right],
        "aten::addmm": [[8192], left, right],
        "aten::bmm": [[1, *left], [1, *right]],
    }[op]
    scene = Recording().step(0, 0, wall).op(op, 0, dims, BF16).kernel(GEMM, 1, 2, dur)
    return scene.kernel("other", 3, 2 + dur, wall - 2 - dur)


@pytest.mark.parametrize("op", ["aten::mm", "aten::addmm"])
def test_few_rows(op: str) -> None:
    """50 us: 44.5 are 89 % of the memory's roof; 50 of 150 are a third of the time."""
    scene = decoded(4, 50, wall=150, op=op)
    found = scene.findings()["few-rows"]
    assert found.saving_us is None
    assert shown(found) == "0.05 ms per step, 33 %"
    assert ops_of(scene, found) == [op]


def test_a_vector_is_one_row() -> None:
    name = "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, float>"
    scene = Recording().step(0, 0, 150).op("aten::mv", 0, [[8192, 8192], [8192]], BF16)
    scene.kernel(name, 1, 2, 50).kernel("other", 3, 52, 98)
    assert ops_of(scene, scene.findings()["few-rows"]) == ["aten::mv"]


@pytest.mark.parametrize(
    ("rows", "dur", "wall", "op"),
    [
        (5, 50.0, 150.0, "aten::mm"),  # more than four rows
        (4, 50.0, 170.0, "aten::mm"),  # 29 % of the time
        (4, 90.0, 150.0, "aten::mm"),  # 44.5 of 90 us: half of the memory's roof
        (4, 50.0, 150.0, "aten::bmm"),  # each matrix is read for its own rows only
    ],
)
def test_no_few_rows(rows: int, dur: float, wall: float, op: str) -> None:
    assert "few-rows" not in decoded(rows, dur, wall, op).findings()


def copied(*around: str, types: tuple[str, str] = ("float", "float")) -> Recording:
    """A copy of 70 us by aten::copy_ inside these ops, the outermost first, then a product."""
    scene = Recording().step(0, 0, 1000)
    for i, op in enumerate(around):
        scene.host(op, i, 20 - 2 * i)
    scene.host("aten::copy_", 5, 5, **{"Input Dims": [[4096], [4096]], "Input type": list(types)})
    return scene.kernel(COPY, 6, 8, 70).kernel("gemm", 30, 78, 900)


@pytest.mark.parametrize("around", [("aten::contiguous", "aten::clone"), ("aten::reshape", "aten::clone")])
def test_contiguous_copies(around: tuple[str, ...]) -> None:
    found = copied(*around).findings()["contiguous-copies"]
    assert found.saving_us == 70
    assert shown(found) == "1 per step, 0.07 ms per step, 7 %"


def test_other_copies_ask_for_no_order() -> None:
    """One that the program wrote itself, one to another type, and one in the order of the file alone."""
    assert "contiguous-copies" not in copied("aten::to", "aten::_to_copy").findings()
    assert "contiguous-copies" not in copied("aten::clone", types=(BF16, "float")).findings()
    assert "contiguous-copies" not in copied().findings()
