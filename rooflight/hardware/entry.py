"""An entry of the catalogue as the command line prints it and the API answers it."""

from __future__ import annotations

from typing import Any

from rooflight.hardware.clocks import at_clock
from rooflight.hardware.dense import fp16_accumulate, peaks, ridges
from rooflight.hardware.limits import record_of
from rooflight.hardware.model import Gpu


def entry(gpu: Gpu) -> dict[str, Any]:
    """Plain JSON of ``gpu``: ``peaks_tflops`` dense by dtype (int8: TOP/s), ``vector_tflops`` on the
    ordinary units, ``fp16_accumulate_tflops`` with fp16 sums, ``mem_bw_gbs``, ``ridge`` in FLOP per byte,
    ``efficiency`` as fractions measured on this model, ``sm_limits`` of one SM (AMD: CU), ``slice_of`` the id
    of the whole device when this is a part of it.  An unknown peak is absent, an unknown figure null."""
    return {
        "id": gpu.id,
        "name": f"{gpu.name} {gpu.variant}".strip(),
        "vendor": gpu.vendor,
        "arch": gpu.arch,
        "compute": gpu.compute,
        "device_unit": gpu.device_unit,
        "peaks_tflops": peaks(gpu),
        "vector_tflops": dict(gpu.vector),
        "fp16_accumulate_tflops": fp16_accumulate(gpu),
        "mem_bw_gbs": gpu.mem_bw_gbs,
        "ridge": ridges(gpu),
        "efficiency": dict(gpu.efficiency),
        "slice_of": gpu.slice_of,
        "sm_count": gpu.sm_count,
        "sm_limits": record_of(gpu.compute),
        "boost_mhz": gpu.boost_mhz,
        "tensor_mhz": gpu.tensor_mhz,
        "capped": gpu.capped,
        "mem_gb": gpu.mem_gb,
        "mem_mib": gpu.mem_mib,
        "mem_type": gpu.mem_type,
        "l2_mib": gpu.l2_mib,
        "llc_mib": gpu.llc_mib,
        "smem_per_sm_kib": gpu.smem_per_sm_kib,
        "link": gpu.link,
        "link_gbs_per_dir": gpu.link_gbs_per_dir,
        "link_gbs_total": gpu.link_gbs_total,
        "pcie_gen": gpu.pcie_gen,
        "tdp_w": gpu.tdp_w,
        "device_names": list(gpu.names),
        "confidence": gpu.confidence,
        "condition": gpu.condition,
        "date": gpu.date,
        "notes": gpu.notes,
        "sources": list(gpu.sources),
    }


def at_clock_entry(gpu: Gpu, sm_mhz: float) -> dict[str, Any]:
    """Its peaks at an SM clock that was observed, beside those of the datasheet's clock."""
    return {
        "sm_mhz": sm_mhz,
        "peaks_tflops": _rounded(at_clock(gpu, sm_mhz)),
        "vector_tflops": _rounded(at_clock(gpu, sm_mhz, matrix=False)),
    }


def _rounded(table: dict[str, float]) -> dict[str, float]:
    return {d: round(peak, 2) for d, peak in table.items()}
