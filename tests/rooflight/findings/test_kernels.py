"""Kernels that use the device badly.  H100 SXM: memory 3.35 TB/s x 0.9, bf16 989.4 TFLOP/s x 0.796;
V100 SXM2 16 GB: 900 GB/s x 0.904.  All times are us.
"""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.protocol import Finding
from tests.recording import V100, Recording

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def row_of_adds(n: int, elements: int, dur: float) -> Recording:
    """``n`` times c = a + b of so many floats, one kernel of ``dur`` each, without gaps from 0 on."""
    scene = Recording(V100).step(0, 0, n * dur)
    for i in range(n):
        scene.op("aten::add", i * 3, [[elements], [elements], []])
        scene.kernel(ADD, i * 3 + 1, i * dur, dur)
    return scene


def test_elementwise_chain() -> None:
    """Three adds of 1,048,576 floats: each writes 4 MiB and the next reads it.  One kernel would spare
    2 x 2 x 4 MiB: at 900 GB/s x 0.904 (measured on the model) 20.62 us, less than the 40 that two of
    three took."""
    found = row_of_adds(3, 1 << 20, 20).findings()["elementwise-chain"]
    assert found.saving_us == pytest.approx(4 * 4_194_304 / (0.904 * 900e9) * 1e6, abs=0.01)
    assert shown(found) == "aten::add → aten::add → aten::add: up to 0.0206 ms per step"


def test_a_chain_saves_no_more_than_all_its_kernels_but_the_longest() -> None:
    """Two adds of 10 us each: 2 x 4,194,304 B would be 10.36 us, and 10 is all that can go."""
    assert row_of_adds(2, 1 << 20, 10).findings()["elementwise-chain"].saving_us == 10


def test_kernels_that_do_not_feed_each_other_are_no_chain() -> None:
    """The second reads 2 x 4 KiB, less than the 4 MiB that the first wrote."""
    scene = Recording(V100).step(0, 0, 40)
    for i, elements in enumerate((1 << 20, 1 << 10)):
        scene.op("aten::add", i * 3, [[elements], [elements], []]).kernel(ADD, i * 3 + 1, i * 20, 20)
    assert "elementwise-chain" not in scene.findings()


def test_tiny_kernels() -> None:
    """100 adds of 1,024 floats, 4 us each: 12,288 B take 0.0151 us of 813.6 GB/s, the rest is overhead."""
    found = row_of_adds(100, 1 << 10, 4).findings()["tiny-kernels"]
    assert found.saving_us == pytest.approx(100 * (4 - 12_288 / 813.6e9 * 1e6), abs=0.01)
    assert shown(found) == "100 per step under 5 us, together 0.4 ms per step, 100 % of the time"


def test_kernels_of_five_microseconds_are_not_tiny() -> None:
    assert "tiny-kernels" not in row_of_adds(100, 1 << 10, 5).findings()


def test_short_kernels_at_their_roof_are_not_tiny() -> None:
    """262,144 floats: 3,145,728 B are 3.87 us of 813.6 GB/s, 97 % of the 4 that it takes."""
    assert "tiny-kernels" not in row_of_adds(100, 1 << 18, 4).findings()


def product(kernel: str, dur: float, dtype: str = "float", device: dict[str, Any] | None = None) -> Recording:
    """[4096, 4096] x [4096, 4096] and nothing else: 137,438,953,472 FLOPs."""
    scene = Recording(device) if device else Recording()
    square = [4096, 4096]
    return scene.step(0, 0, dur + 2).op("aten::mm", 0, [square, square], dtype).kernel(kernel, 1, 2, dur)


def test_fp32_matrix() -> None:
    """3000 us on an H100.  fp32: 66.9 TFLOP/s x 0.9 = 60.21 give 2282.66 us; tf32 at its practical roof is
    t32; the saving is 3000 x (1 - t_tf32 / 2282.66)."""
    scene = product("ampere_sgemm_128x128_nn", 3000)
    roofs = scene.rank().roofs["0"].compute
    fp32_us = 137_438_953_472 / (roofs.get("fp32") or scene.rank().roofs["0"].vector["fp32"]).practical * 1e6  # type: ignore[operator]
    tf32_us = 137_438_953_472 / roofs["tf32"].practical * 1e6  # type: ignore[operator]
    assert 0 < tf32_us < fp32_us / 4
    found = scene.findings()["fp32-matrix"]
    assert found.saving_us == pytest.approx(3000 * (1 - tf32_us / fp32_us), abs=0.001)


@pytest.mark.parametrize(
    ("kernel", "dtype", "device"),
    [
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x32", "float", None),  # TF32 already
        ("gemm", "float", None),  # its name does not tell
        ("ampere_sgemm_128x128_nn", "float", V100),  # no TF32 units
        ("ampere_bf16_s16816gemm_bf16_128x128", "c10::BFloat16", None),
    ],
)
def test_no_fp32_matrix(kernel: str, dtype: str, device: dict[str, Any] | None) -> None:
    assert "fp32-matrix" not in product(kernel, 3000, dtype, device).findings()


def test_gemm_under_roof() -> None:
    """bf16: 137,438,953,472 FLOPs over 989.4 x 0.796 TFLOP/s are the bound; it took 1000 us."""
    scene = product("ampere_bf16_s16816gemm_bf16_128x128", 1000, "c10::BFloat16")
    bound_us = 137_438_953_472 / scene.rank().roofs["0"].compute["bf16"].practical * 1e6  # type: ignore[operator]
    assert 170 < bound_us < 180
    found = scene.findings()["gemm-under-roof"]
    assert found.saving_us == pytest.approx(1000 - bound_us, abs=0.001)
    assert shown(found) == f"aten::mm [[4096, 4096], [4096, 4096]]: {bound_us / 10:.0f} % of its roof"


@pytest.mark.parametrize("dur", [280.0, 19.0])
def test_no_gemm_under_roof(dur: float) -> None:
    """280: over 60 % of the roof.  19: too short for its kernel to be the matter (and impossible)."""
    scene = product("ampere_bf16_s16816gemm_bf16_128x128", dur, "c10::BFloat16")
    assert "gemm-under-roof" not in scene.findings()


def test_memory_bound_has_no_figure() -> None:
    """16,777,216 floats: 201,326,592 B take 247.5 us at 813.6 GB/s: 99 % of the 250 that it takes."""
    found = row_of_adds(1, 1 << 24, 250).findings()["memory-bound"]
    assert found.saving_us is None
    assert shown(found) == "0.25 ms per step, 100 %"


def test_little_time_at_the_memory_roof_is_not_told() -> None:
    """250 of 2500 us: 10 %, half of what is worth a word."""
    scene = Recording(V100).step(0, 0, 2500).op("aten::add", 0, [[1 << 24], [1 << 24], []])
    assert "memory-bound" not in scene.kernel(ADD, 1, 2, 250).findings()


def test_layout_conversions() -> None:
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 900)
    name = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>"
    scene.kernel(name, 10, 900, 100)
    assert scene.findings()["layout-conversions"].saving_us == 100
    # 9 us of 1009 are under one in a hundred.
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 991).kernel(name, 10, 991, 9)
    assert "layout-conversions" not in scene.findings()


def test_needless_fills() -> None:
    """A fill of 60 us and a memset of 40 that runs alone; 20 more of it lie under a kernel."""
    scene = Recording().step(0, 0, 1000).op("aten::fill_", 0, [[1 << 20], []]).kernel(FILL, 1, 2, 60)
    scene.gpu("gpu_memset", "Memset (Device)", 5, 62, 60, call="cudaMemsetAsync", bytes=64, stream=9)
    scene.kernel("gemm", 6, 102, 898)
    assert scene.findings()["needless-fills"].saving_us == 60 + 40


def test_casts() -> None:
    """copy_(bf16 target, fp32 source) is a cast, copy_(fp32, fp32) is none."""
    name = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(float)>"
    scene = Recording().step(0, 0, 1000).op("aten::copy_", 0, [[1 << 20], [1 << 20], []])
    scene.host("aten::copy_", 100, 3, **{"Input Dims": [[9], [9]], "Input type": ["c10::BFloat16", "float"]})
    scene.kernel(name, 1, 4, 90).kernel(name, 101, 104, 70).kernel("gemm", 150, 180, 800)
    assert scene.findings()["casts"].saving_us == 70


def test_low_occupancy() -> None:
    """255 registers and 256 threads: 65,536 // (255 -> 256 registers x 256) = 1 block of 8 warps, 8 of 64."""
    shape = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 255, "shared memory": 0}
    scene = Recording().step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    scene.kernel(ADD, 1, 2, 900, **shape)
    bound_us = 3 * 4 * (1 << 20) / scene.rank().roofs["0"].memory.practical * 1e6  # type: ignore[union-attr, operator]
    assert scene.findings()["low-occupancy"].saving_us == pytest.approx(900 - bound_us, abs=0.001)
    # 64 registers let 4 blocks of 8 warps stay: 32 of 64.
    scene = Recording().step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    scene.kernel(ADD, 1, 2, 900, **shape | {"registers per thread": 64})
    assert "low-occupancy" not in scene.findings()
