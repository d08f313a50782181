"""Roofs: datasheet x factor, the factor being the first that exists of four."""

from __future__ import annotations

import pytest

from rooflight.calibration import Calibration
from rooflight.hardware import Gpu, ceilings, cpu_roofs, find, gpus
from rooflight.protocol import Ceiling


def gpu(name: str) -> Gpu:
    found = find(name)
    assert found is not None
    return found


def calibration(**rates: object) -> Calibration:
    return Calibration(
        device="NVIDIA H100 80GB HBM3", kind="gpu", measured_at="2026-12-01T00:00:00Z", **rates
    )


def told(ceiling: Ceiling | None) -> tuple[float | None, float | None, str]:
    assert ceiling is not None
    return ceiling.datasheet, ceiling.practical, ceiling.origin


@pytest.mark.parametrize(
    ("name", "dtype", "peak", "factor", "origin"),
    [
        # Median of the two bf16 GEMM rows: (0.803 + 0.789) / 2.
        ("h100-sxm", "bf16", 989.4, 0.796, "factor"),
        # fp16 has no row of its own: bf16 stands in.
        ("h100-sxm", "fp16", 989.4, 0.796, "factor"),
        ("h100-sxm", "fp8", 1978.9, 0.709, "factor"),
        # No tf32 row: Hopper's default.
        ("h100-sxm", "tf32", 494.7, 0.80, "factor"),
        # fp32 runs on the ordinary units.
        ("h100-sxm", "fp32", 66.9, 0.90, "factor"),
        # (0.511 + 0.542) / 2, and fp16's own row.
        ("mi300x", "bf16", 1307.4, 0.5265, "factor"),
        ("mi300x", "fp16", 1307.4, 0.500, "factor"),
        ("mi300x", "int8", 2614.9, 0.53, "factor"),
        ("mi325x", "bf16", 1307.4, 0.6225, "factor"),
        ("mi325x", "int8", 2614.9, 0.62, "factor"),
        ("b200", "tf32", 1125, 0.77, "factor"),
        ("a100-sxm4-40", "bf16", 312, 0.85, "factor"),
        ("a100-pcie-80", "bf16", 312, 0.811, "factor"),
        # Nothing measured on the model or its family.
        ("l40s", "bf16", 362, 0.80, "assumed"),
        ("t4", "fp16", 65, 0.80, "assumed"),
        # Capped by firmware: Hopper's default is not for it.
        ("h20", "bf16", 148, 0.80, "assumed"),
        # Boost above the nominal clock: the practical roof stands above the datasheet.
        ("rtx4090", "bf16", 165.2, 1.085, "factor"),
    ],
)
def test_compute_factor(name: str, dtype: str, peak: float, factor: float, origin: str) -> None:
    datasheet, practical, source = told(ceilings(gpu(name)).compute[dtype])
    assert datasheet == pytest.approx(peak * 1e12)
    assert practical == pytest.approx(peak * 1e12 * factor)
    assert source == origin


@pytest.mark.parametrize(
    ("name", "gbs", "factor", "origin"),
    [
        ("v100-sxm2-16", 900, 0.904, "factor"),  # triad; the read row (0.962) is not how kernels run
        ("v100-sxm2-32", 900, 0.90, "factor"),
        ("h200-sxm", 4800, 0.90, "factor"),  # its own triad had two blocks per SM: left out
        ("mi210", 1638.4, 0.797, "factor"),  # triad, not scale (0.854)
        ("mi355x", 8000, 0.81, "factor"),
        ("gb300", 8000, 0.90, "factor"),  # a probe is no triad
        ("agx-orin-64", 204.8, 0.85, "assumed"),  # LPDDR: neither HBM nor GDDR
        ("gaudi2", 2460, 0.85, "assumed"),
    ],
)
def test_memory_factor(name: str, gbs: float, factor: float, origin: str) -> None:
    datasheet, practical, source = told(ceilings(gpu(name)).memory)
    assert datasheet == pytest.approx(gbs * 1e9)
    assert practical == pytest.approx(gbs * 1e9 * factor)
    assert source == origin


def test_links_are_per_direction() -> None:
    roofs = ceilings(gpu("h200-sxm"))
    # NVLink 450 GB/s, pairwise copy 0.881; PCIe 5 x16 63 GB/s, measured 0.88.
    assert told(roofs.link) == (450e9, pytest.approx(450e9 * 0.881), "factor")
    assert told(roofs.pcie) == (63e9, pytest.approx(63e9 * 0.88), "factor")
    # V100: PCIe 3 x16 15.75 GB/s, nothing measured.
    assert told(ceilings(gpu("v100-sxm2-16")).pcie) == (15.75e9, pytest.approx(15.75e9 * 0.85), "assumed")
    assert ceilings(gpu("l4")).link is None


def test_vector_roofs_are_their_own() -> None:
    # A100: fp64 9.7 on the ordinary units, 19.5 on the matrix units.
    roofs = ceilings(gpu("a100-sxm4-80"))
    assert told(roofs.vector["fp64"]) == (pytest.approx(9.7e12), pytest.approx(9.7e12 * 0.9), "factor")
    assert told(roofs.compute["fp64"])[0] == pytest.approx(19.5e12)


def test_a_calibration_of_this_device_comes_first() -> None:
    measured = calibration(
        gemm_tflops={"bf16": 700.0}, vector_tflops={"fp32": 60.0}, stream_gbs=3_000.0, copy_gbs=50.0
    )
    roofs = ceilings(gpu("h100-sxm"), measured)
    assert told(roofs.compute["bf16"]) == (pytest.approx(989.4e12), 700e12, "measured")
    # fp16 stands in: 989.4 x 700 / 989.4.
    assert told(roofs.compute["fp16"]) == (pytest.approx(989.4e12), pytest.approx(700e12), "measured")
    assert told(roofs.compute["fp8"])[2] == "factor"
    assert told(roofs.vector["fp32"]) == (pytest.approx(66.9e12), 60e12, "measured")
    assert told(roofs.memory) == (3_350e9, 3_000e9, "measured")
    assert told(roofs.pcie) == (63e9, 50e9, "measured")
    assert "2026-12-01" in roofs.compute["bf16"].source


def test_an_unknown_gpu_has_no_roof() -> None:
    roofs = ceilings(None)
    assert (roofs.gpu_id, roofs.compute, roofs.vector, roofs.memory, roofs.pcie) == (None, {}, {}, None, None)


def test_an_unknown_gpu_has_what_was_calibrated_and_no_datasheet() -> None:
    roofs = ceilings(None, calibration(gemm_tflops={"bf16": 100.0}, stream_gbs=500.0))
    assert told(roofs.compute["bf16"]) == (None, 100e12, "measured")
    assert told(roofs.memory) == (None, 500e9, "measured")


def test_cpu_roofs_are_measured_or_absent() -> None:
    assert cpu_roofs(None).compute == {}
    assert cpu_roofs(None).memory is None
    cpu = Calibration(
        device="Some CPU",
        kind="cpu",
        measured_at="2026-12-01T00:00:00Z",
        gemm_tflops={"fp32": 0.5},
        vector_tflops={"fp32": 0.4},
        stream_gbs=20.0,
        copy_gbs=25.0,
    )
    roofs = cpu_roofs(cpu)
    assert (roofs.kind, roofs.name, roofs.gpu_id) == ("cpu", "Some CPU", None)
    assert told(roofs.compute["fp32"]) == (None, 0.5e12, "measured")
    assert told(roofs.vector["fp32"]) == (None, 0.4e12, "measured")
    assert told(roofs.memory) == (None, 20e9, "measured")
    assert roofs.pcie is None  # a CPU's copy is memory to memory


def test_no_roof_for_fp16_accumulation() -> None:
    # RTX 4090: 330.3 TFLOP/s with fp16 sums; the roof is 165.2.
    roofs = ceilings(gpu("rtx4090"))
    assert set(roofs.compute) == {"fp64", "fp32", "fp16", "bf16", "tf32", "fp8", "int8"}


def test_every_entry_has_positive_roofs_with_a_source() -> None:
    for g in gpus():
        roofs = ceilings(g)
        for c in (*roofs.compute.values(), *roofs.vector.values(), roofs.memory, roofs.link, roofs.pcie):
            if c is not None:
                assert c.datasheet is not None
                assert c.practical is not None
                assert 0 < c.practical < 1.3 * c.datasheet
                assert c.source
