"""Peaks at an observed clock: the datasheet's figure times observed over stated."""

from __future__ import annotations

import json

import pytest

from rooflight.hardware import Gpu, ceilings, find, gpus, observe
from rooflight.hardware.clocks import at_clock, stated_mhz


def the(name: str) -> Gpu:
    found = find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("gpu_id", "dtype", "matrix", "mhz", "tflops"),
    [
        # Matrix peaks of Hopper are stated at 1830 MHz, fp64 and the ordinary units at 1980.
        ("h100-sxm", "bf16", True, 1830, 989.4),
        ("h100-sxm", "bf16", True, 1500, 989.4 * 1500 / 1830),
        ("h100-sxm", "fp64", True, 990, 66.9 / 2),
        ("h100-sxm", "fp32", True, 990, 66.9 / 2),  # no fp32 on the matrix units
        ("h100-sxm", "fp32", False, 1980, 66.9),
        # One clock: 1410. A slice runs at the clock of the whole: 312 / 7 x 705 / 1410.
        ("a100-sxm4-80", "bf16", True, 1410, 312),
        ("a100-sxm4-80/1g.10gb", "bf16", True, 705, 312 / 7 / 2),
        # A card that boosts: 165.2 x 2750 / 2520 = 180.3; measured were 179.2.
        ("rtx4090", "bf16", True, 2750, 180.28),
        # L4 under its 72 W: 121 x 1020 / 2040.
        ("l4", "fp16", True, 1020, 60.5),
        ("mi300x", "fp32", True, 1050, 81.7),
    ],
)
def test_peak_at_an_observed_clock(gpu_id: str, dtype: str, matrix: bool, mhz: float, tflops: float) -> None:
    assert at_clock(the(gpu_id), mhz, matrix=matrix)[dtype] == pytest.approx(tflops, rel=1e-4)


def test_a_capped_peak_and_one_without_a_clock_have_none() -> None:
    # 78 SM x 4096 x 1.98 GHz = 633 TFLOP/s: the H20's 148 are its firmware's, at whatever clock.
    assert at_clock(the("h20"), 1980) == {}
    assert at_clock(the("b300"), 1900) == {}
    assert [g.id for g in gpus() if g.capped] == ["h20", "h20-3e"]


@pytest.mark.parametrize("mhz", [0, -1, float("nan"), float("inf"), 1_410_000_000])
def test_what_is_no_clock_gives_no_peak(mhz: float) -> None:
    assert at_clock(the("a100-sxm4-80"), mhz) == {}


def test_stated_clocks_explain_the_peaks() -> None:
    """SM x FLOP per clock and SM x the stated clock is the dense peak, within 3 %: Hopper's 4096 for 16 bits
    and 256 for fp64 on the matrix units, 256 for fp32 on the others; A100's 2048."""
    for gpu_id, dtype, matrix, flop in [
        ("h100-sxm", "bf16", True, 4096),
        ("h100-pcie", "bf16", True, 4096),
        ("h100-sxm", "fp64", True, 256),
        ("h100-pcie", "fp64", True, 256),
        ("h100-sxm", "fp32", False, 256),
        ("a100-sxm4-80", "bf16", True, 2048),
        ("b200", "bf16", True, 8192),
    ]:
        gpu = the(gpu_id)
        mhz = stated_mhz(gpu, dtype, matrix=matrix)
        assert mhz is not None
        assert gpu.sm_count is not None
        peak = (gpu.matrix if matrix else gpu.vector)[dtype]
        assert gpu.sm_count * flop * mhz / 1e6 == pytest.approx(peak, rel=0.03)


def test_observed_is_a_third_figure_beside_the_two() -> None:
    before, roofs = ceilings(the("h100-sxm")), observe(ceilings(the("h100-sxm")), the("h100-sxm"), 1500)
    bf16 = roofs.compute["bf16"]
    assert bf16.observed == pytest.approx(989.4e12 * 1500 / 1830)
    assert (bf16.datasheet, bf16.practical) == (
        before.compute["bf16"].datasheet,
        before.compute["bf16"].practical,
    )
    assert roofs.vector["fp32"].observed == pytest.approx(66.9e12 * 1500 / 1980)
    assert roofs.memory is not None
    assert roofs.memory.observed is None  # which has its own clock
    assert roofs.observed_mhz == 1500


def test_without_telemetry_nothing_is_observed() -> None:
    for roofs in (
        observe(ceilings(the("h100-sxm")), the("h100-sxm"), None),
        observe(ceilings(the("h20")), the("h20"), 1500),
        observe(ceilings(None), None, 1500),
    ):
        assert roofs.observed_mhz is None
        assert all(c.observed is None for c in (*roofs.compute.values(), *roofs.vector.values()))


def test_command_tells_peaks_at_a_clock(capsys: pytest.CaptureFixture[str]) -> None:
    from rooflight.cli.main import main

    assert main(["gpus", "a100-sxm4-80", "--clock", "705", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["peaks_tflops"]["bf16"] == 312
    assert told["at_clock"]["sm_mhz"] == 705
    assert told["at_clock"]["peaks_tflops"]["bf16"] == 156
    assert told["at_clock"]["vector_tflops"]["fp32"] == 9.75
    assert main(["gpus", "a100-sxm4-80", "--clock", "705"]) == 0
    assert "156 TFLOP/s at 705 MHz" in capsys.readouterr().out
    for wrong in (
        ["gpus", "l4", "--clock", "nan"],
        ["gpus", "l4", "--clock", "-5"],
        ["gpus", "--clock", "705"],
    ):
        assert main(wrong) == 2
        assert "clock" in capsys.readouterr().err
