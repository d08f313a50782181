"""Why a product is far under its roof: how its sizes fill tiles, how its blocks fill the device."""

from __future__ import annotations

import pytest

from rooflight.findings.tiles import filled, tile_of
from tests.recording import Recording


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x5_nn", (128, 64)),
        (
            "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x256x64_1x1x1_0_tnt_align8",
            (128, 256),
        ),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x192x64_warpgroupsize1x1x1", (128, 192)),
        ("Cijk_Alik_Bljk_HSS_BH_MT256x96x32_MI32x32x1_SN", (256, 96)),
        ("nvjet_tst_192x128_64x4_2x1_v_bz_TNT", (192, 128)),
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNN", (64, 8)),  # 64 deep, 16 stages
        ("nvjet_hsh_8x64_64x16_1x4_h_bz_TNT", (8, 64)),
        ("nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT", (128, 256)),
        ("Cijk_Ailk_Bljk_SB_MT8x128x16_SE_K1", (8, 128)),
        ("gemm_64x8_2x1", None),
        ("gemm", None),
        ("x" * 100_000 + "_128x128_", None),
    ],
)
def test_a_name_tells_its_tile(name: str, tile: tuple[int, int] | None) -> None:
    assert tile_of(name) == tile


def test_the_share_of_tiles_that_is_filled() -> None:
    """130 x 128: two tiles high, 130 of 256 rows.  64 x 256 fills a tile of 256 x 64 the other way round."""
    assert filled((128, 128), (128, 128)) == 1
    assert filled((130, 128), (128, 128)) == pytest.approx(130 / 256)
    assert filled((64, 256), (256, 64)) == 1


def product(rows: int, kernel: str = "ampere_bf16_s16816gemm_bf16_128x128_ldg8") -> str:
    """What is said of [rows, 4096] x [4096, 4096] that takes 1000 us."""
    scene = Recording().step(0, 0, 1002)
    scene.op("aten::mm", 0, [[rows, 4096], [4096, 4096]], "c10::BFloat16").kernel(kernel, 1, 2, 1000)
    return scene.findings()["gemm-under-roof"].evidence[0].text


def test_sizes_that_leave_tiles_empty_are_named() -> None:
    """129 of two tiles of 128 rows: 50 %.  205 of 256 are four fifths."""
    assert "its 129 x 4096 results fill 50 % of tiles of 128 x 128" in product(129)
    assert "tiles" not in product(205)
    assert "tiles" not in product(129, "gemm")


def test_what_keeps_the_launch_from_filling_the_device_is_said() -> None:
    """40 blocks on 132 SMs."""
    shape = {"grid": [40, 1, 1], "block": [256, 1, 1], "registers per thread": 64, "shared memory": 0}
    scene = Recording().step(0, 0, 1002).op("aten::mm", 0, [[4096, 4096], [4096, 4096]], "c10::BFloat16")
    found = scene.kernel("gemm_bf16", 1, 2, 1000, **shape).findings()
    assert "40 blocks on 132 SMs" in found["gemm-under-roof"].evidence[0].text
