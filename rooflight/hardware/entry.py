"""An entry of the catalogue as the command line prints it and the API answers it."""

from __future__ import annotations

from typing import Any

from rooflight.hardware.dense import peaks, ridges
from rooflight.hardware.model import Gpu


def entry(gpu: Gpu) -> dict[str, Any]:
    """Plain JSON of ``gpu``: ``peaks_tflops`` dense by dtype (int8: TOP/s), ``vector_tflops`` on the
    ordinary units, ``mem_bw_gbs``, ``ridge`` in FLOP per byte, ``efficiency`` as fractions measured on
    this model.  An unknown peak is absent, an unknown figure null."""
    return {
        "id": gpu.id,
        "name": f"{gpu.name} {gpu.variant}".strip(),
        "vendor": gpu.vendor,
        "arch": gpu.arch,
        "compute": gpu.compute,
        "device_unit": gpu.device_unit,
        "peaks_tflops": peaks(gpu),
        "vector_tflops": dict(gpu.vector),
        "mem_bw_gbs": gpu.mem_bw_gbs,
        "ridge": ridges(gpu),
        "efficiency": dict(gpu.efficiency),
        "sm_count": gpu.sm_count,
        "boost_mhz": gpu.boost_mhz,
        "mem_gb": gpu.mem_gb,
        "link": gpu.link,
        "link_gbs_per_dir": gpu.link_gbs_per_dir,
        "pcie_gen": gpu.pcie_gen,
        "tdp_w": gpu.tdp_w,
        "device_names": list(gpu.names),
        "confidence": gpu.confidence,
        "notes": gpu.notes,
        "sources": list(gpu.sources),
    }
