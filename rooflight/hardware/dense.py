"""The peaks that matrix work of a device can ask for."""

from __future__ import annotations

from rooflight.hardware.model import Gpu

#: Peaks with fp16 accumulation are in the catalogue, but no name of a kernel asks for them.
_NO_ROOF = "_fp16acc"


def peaks(gpu: Gpu) -> dict[str, float]:
    """Dense peaks of matrix work by dtype, in TFLOP/s: on the matrix units where they take the dtype,
    else on the ordinary ones."""
    both = {**gpu.vector, **gpu.matrix}
    return {d: peak for d, peak in both.items() if not d.endswith(_NO_ROOF)}


def fp16_accumulate(gpu: Gpu) -> dict[str, float]:
    """Dense peaks by dtype of matrix work that adds up in fp16, in TFLOP/s."""
    return {d.removesuffix(_NO_ROOF): p for d, p in gpu.matrix.items() if d.endswith(_NO_ROOF)}


def ridges(gpu: Gpu) -> dict[str, float]:
    """Per dtype the arithmetic intensity where compute and memory take equal time, FLOP per byte."""
    if not gpu.mem_bw_gbs:
        return {}
    return {d: round(peak * 1_000 / gpu.mem_bw_gbs, 2) for d, peak in peaks(gpu).items()}
