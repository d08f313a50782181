"""The two sets of roofs of a device: datasheet, and what of it can be reached (DEFINITIONS §15).

practical = datasheet x factor, the factor being the first that exists of: a calibration of this very
device (``measured``); what was measured on this model; the default of its family (both ``factor``);
0.80 of compute and 0.85 of bandwidth (``assumed``, which lowers the confidence of verdicts).
"""

from __future__ import annotations

from typing import NamedTuple

from rooflight.calibration import Calibration
from rooflight.hardware.catalogue import measurements
from rooflight.hardware.clocks import at_clock
from rooflight.hardware.dense import peaks
from rooflight.hardware.model import Gpu
from rooflight.protocol import Ceiling, Roofs
from rooflight.units import GIGA, TERA

#: GB/s per direction of a 16-lane slot, by generation.
PCIE_GBS = {3: 15.75, 4: 31.5, 5: 63.0}
VECTOR_FACTOR = 0.90
ASSUMED_COMPUTE = 0.80
ASSUMED_BANDWIDTH = 0.85
_TWINS = {"fp16": "bf16", "bf16": "fp16"}


class _Factor(NamedTuple):
    value: float
    origin: str
    source: str


def ceilings(gpu: Gpu | None, calibration: Calibration | None = None, *, inferred: bool = False) -> Roofs:
    """The roofs of ``gpu`` in FLOP/s and B/s; of an unknown one only what was calibrated."""
    roofs = Roofs(inferred=inferred)
    if gpu is not None:
        roofs = Roofs(
            gpu_id=gpu.id,
            name=f"{gpu.name} {gpu.variant}".strip(),
            inferred=inferred,
            compute={d: _compute(gpu, d, peak, calibration) for d, peak in peaks(gpu).items()},
            vector={d: _scaled(peak * TERA, _vector_factor()) for d, peak in gpu.vector.items()},
            memory=_bandwidth(gpu, "memory", gpu.mem_bw_gbs),
            link=_bandwidth(gpu, "link", gpu.link_gbs_per_dir),
            pcie=_bandwidth(gpu, "pcie", PCIE_GBS.get(gpu.pcie_gen or 0)),
            sm_count=gpu.sm_count,
            sources=list(gpu.sources),
        )
    return roofs if calibration is None else _calibrated(roofs, calibration)


def cpu_roofs(calibration: Calibration | None) -> Roofs:
    """The roofs of the host CPU: what was measured on it, and nothing else."""
    roofs = Roofs(kind="cpu")
    if calibration is None:
        return roofs
    roofs.name = calibration.device
    return _calibrated(roofs, calibration)


def observe(roofs: Roofs, gpu: Gpu | None, sm_mhz: float | None) -> Roofs:
    """``roofs`` with ``observed`` of each compute roof: its datasheet figure at the SM clock ``sm_mhz``,
    the mean over the time in which the device worked.  Memory has its own clock and keeps none.

    It is informative: verdicts stay on the practical roofs.
    """
    if gpu is None or sm_mhz is None:
        return roofs
    for table, matrix in ((roofs.compute, True), (roofs.vector, False)):
        for dtype, tflops in at_clock(gpu, sm_mhz, matrix=matrix).items():
            if dtype in table:
                table[dtype].observed = tflops * TERA
                roofs.observed_mhz = sm_mhz
    return roofs


# --- factors ---------------------------------------------------------------------------------------


def _compute(gpu: Gpu, dtype: str, peak: float, calibration: Calibration | None) -> Ceiling:
    return _scaled(peak * TERA, _twin_factor(gpu, dtype, calibration) or _compute_factor(gpu, dtype))


def _twin_factor(gpu: Gpu, dtype: str, calibration: Calibration | None) -> _Factor | None:
    """fp16 and bf16 stand in for each other: a calibration of the one tells the share of the other."""
    twin = _TWINS.get(dtype, "")
    peak = peaks(gpu).get(twin)
    rate = calibration.gemm_tflops.get(twin) if calibration else None
    if calibration is None or not peak or not rate:
        return None
    return _Factor(rate / peak, "measured", f"{_calibration_source(calibration)}, {twin}")


def _compute_factor(gpu: Gpu, dtype: str) -> _Factor:
    for measured in (dtype, _TWINS.get(dtype, "")):
        if measured in gpu.efficiency:
            return _Factor(gpu.efficiency[measured], "factor", _measurement_source(gpu, measured))
    if dtype not in gpu.matrix:
        return _vector_factor()
    family = _family_compute(gpu)
    if family is not None:
        return _Factor(family, "factor", f"measured on the {gpu.arch} family")
    return _Factor(ASSUMED_COMPUTE, "assumed", "assumed: no measurement of this model or family")


def _vector_factor() -> _Factor:
    return _Factor(VECTOR_FACTOR, "factor", "rule for ordinary units")


def _family_compute(gpu: Gpu) -> float | None:
    """Defaults by family.  An H20 is capped by firmware and takes no part in Hopper's."""
    if gpu.arch == "Hopper":
        return None if gpu.capped else 0.80
    if gpu.arch == "Blackwell":
        return 0.77 if gpu.compute.startswith("10.") else None
    if gpu.name in ("A100", "A800", "A100 or A800"):
        return 0.85
    if gpu.arch == "CDNA3":
        return 0.62 if gpu.sku == "mi325x" else 0.53
    return 0.62 if gpu.arch == "CDNA4" else None


def _bandwidth(gpu: Gpu, use: str, gbs: float | None) -> Ceiling | None:
    if gbs is None:
        return None
    if use in gpu.efficiency:
        factor = _Factor(gpu.efficiency[use], "factor", _measurement_source(gpu, use))
    elif use == "memory" and (family := _family_bandwidth(gpu)):
        factor = _Factor(family, "factor", f"measured on other {gpu.vendor} devices")
    else:
        factor = _Factor(ASSUMED_BANDWIDTH, "assumed", "assumed: no measurement of this model or family")
    return _scaled(gbs * GIGA, factor)


def _family_bandwidth(gpu: Gpu) -> float | None:
    if gpu.vendor == "AMD":
        return 0.81
    memory = gpu.mem_type or ""
    return 0.90 if gpu.vendor == "NVIDIA" and memory.startswith(("HBM", "GDDR")) else None


def _scaled(datasheet: float, factor: _Factor) -> Ceiling:
    return Ceiling(
        datasheet=datasheet, practical=datasheet * factor.value, origin=factor.origin, source=factor.source
    )


def _measurement_source(gpu: Gpu, use: str) -> str:
    sources = [f"{m.metric}: {m.source}" for m in measurements() if m.gpu_id == gpu.sku and m.use == use]
    return "; ".join(dict.fromkeys(sources)) or "measured alike on each model that it may be"


# --- calibration -----------------------------------------------------------------------------------


def _calibrated(roofs: Roofs, calibration: Calibration) -> Roofs:
    """The roofs with each practical figure replaced that was measured on this very device."""
    source = _calibration_source(calibration)
    for table, rates in ((roofs.compute, calibration.gemm_tflops), (roofs.vector, calibration.vector_tflops)):
        for dtype, tflops in rates.items():
            table[dtype] = _measured(table.get(dtype), tflops * TERA, source)
    if calibration.stream_gbs is not None:
        roofs.memory = _measured(roofs.memory, calibration.stream_gbs * GIGA, source)
    if calibration.copy_gbs is not None and roofs.kind == "gpu":
        roofs.pcie = _measured(roofs.pcie, calibration.copy_gbs * GIGA, source)
    return roofs


def _measured(before: Ceiling | None, rate: float, source: str) -> Ceiling:
    datasheet = before.datasheet if before else None
    return Ceiling(datasheet=datasheet, practical=rate, origin="measured", source=source)


def _calibration_source(calibration: Calibration) -> str:
    sure = f", confidence {calibration.confidence}" if calibration.confidence else ""
    return f"calibration of {calibration.device}, {calibration.measured_at}{sure}"
