"""More rules: each with a recording that it sees, one that it nearly sees, and its saving by arithmetic.

Roofs used below.  H100 SXM: memory 3.35 TB/s x 0.9 = 3.015 TB/s, 132 SMs.  All times are us.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.protocol import Finding
from tests.recording import Recording
from tests.shared import traces_dir

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
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


def memory_us(size: int) -> float:
    """So many bytes at 3.015 TB/s."""
    return size / 3.015e12 * 1e6


# --- underfilled-grid ----------------------------------------------------------------------------


def grid_of(blocks: int, dur: float = 900) -> Recording:
    """An add of 1,048,576 floats in so many blocks, and nothing else until 1000."""
    shape = {"grid": [blocks, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}
    scene = Recording().step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    return scene.kernel(ADD, 1, 2, dur, **shape)


def test_underfilled_grid() -> None:
    """131 blocks for 132 SMs.  3 x 4 MiB take 4.17 us of the memory: 900 less that can go."""
    found = grid_of(131).findings()["underfilled-grid"]
    assert found.saving_us == pytest.approx(900 - memory_us(3 * 4 * 1_048_576), abs=0.01)
    assert shown(found) == "0.9 ms per step, 90 %"


@pytest.mark.parametrize(("blocks", "dur"), [(132, 900.0), (131, 6.9)])
def test_no_underfilled_grid(blocks: int, dur: float) -> None:
    """A block for each SM; one of 6.9 us is at 4.17 / 6.9 = 60.5 % of its roof."""
    assert "underfilled-grid" not in grid_of(blocks, dur).findings()


# --- embedding-bound -----------------------------------------------------------------------------


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


# --- few-rows ------------------------------------------------------------------------------------


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


# --- contiguous-copies ---------------------------------------------------------------------------


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


# --- small-collectives ---------------------------------------------------------------------------


def reduced(n: int, elements: int, steps: int = 1, **more: Any) -> Recording:
    """``n`` all_reduces of so many floats in each step of 1000, 10 us each, 5 of them beside a kernel."""
    scene = Recording()
    for s in range(steps):
        at = 1000.0 * s
        scene.step(s, at, 1000)
        for i in range(n):
            message = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
            message |= {"In msg nelems": elements, "Out msg nelems": elements} | more
            begin = at + 20 * i + 10
            scene.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, begin, 10, stream=20, **message)
            scene.kernel("gemm", begin + 1, begin + 5, 10)
    return scene


def test_small_collectives() -> None:
    """Eight of 262,143 floats, 4 B under 1 MiB; each runs 5 us alone: 40 of each step of 1000."""
    found = reduced(8, (1 << 18) - 1, steps=2).findings()["small-collectives"]
    assert found.saving_us == 40
    assert shown(found) == "8 per step, the largest of 1,048,572 bytes; 0.04 ms per step, 4 %, only they run"


@pytest.mark.parametrize(
    "scene",
    [
        reduced(8, 1 << 18),  # 1 MiB each
        reduced(7, 1 << 10),  # seven
        reduced(8, 0),  # barriers carry nothing
        reduced(8, 1 << 10, dtype="unheard of"),  # of unknown size
    ],
    ids=["large", "few", "empty", "unknown"],
)
def test_no_small_collectives(scene: Recording) -> None:
    assert "exposed-communication" in scene.findings()
    assert "small-collectives" not in scene.findings()


# --- shared traces -----------------------------------------------------------------------------------


def of_trace(trace: str) -> Any:
    return analyze(read(Path(traces_dir()) / trace)).document.ranks[0]


@pytest.mark.traces
@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        ("pairs/h100/Falconsai_nsfw_image_detection__1016002.json.gz", {"underfilled-grid"}),
        ("pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", {"contiguous-copies"}),
    ],
)
def test_rules_that_a_real_trace_shows(trace: str, codes: set[str]) -> None:
    rank = of_trace(trace)
    found = {f.code: f for f in rank.findings}
    assert codes <= found.keys()
    for f in (found[code] for code in codes):
        rows = [rank.kernels[k] for e in f.evidence for k in e.kernels]
        assert rows
        assert f.saving_us is None or f.saving_us <= rank.steps_total_us / rank.n_steps
