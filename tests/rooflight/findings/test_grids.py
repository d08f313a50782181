"""Grids that leave SMs idle, and groups of several sizes.  All times are us."""

from __future__ import annotations

import pytest

from rooflight.protocol import Finding
from tests.recording import Recording
from tests.rooflight.findings.scenes import memory_us

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


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


def test_launches_of_one_group_that_differ_in_size_are_compared_in_total() -> None:
    """Adds without an op, their sizes told by the grid: 128 threads x 4 floats a block.  Twice 512 blocks,
    262,144 floats, 3 MiB in 4 us: tiny; once 32,768 blocks, 192 MiB in 100 us.  108 us less the time of
    198 MiB can go; the median's share of 108 would be twice as much."""
    scene = Recording().step(0, 0, 108)
    shape = {"block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
    for i, (at, blocks, dur) in enumerate([(0, 512, 4), (4, 512, 4), (8, 32_768, 100)]):
        scene.kernel(f"{ADD[:-1]}, at::detail::Array<char*, 3>>", i, at, dur, grid=[blocks, 1, 1], **shape)
    found = scene.findings()["tiny-kernels"]
    assert found.saving_us == pytest.approx(108 - memory_us(198 << 20), abs=0.01)
