"""Peaks at the clock that was observed: informative, for verdicts stay on the practical roofs.

A datasheet states its peaks at one clock; those of Hopper's matrix units at a lower one than the others.  A
device that ran slower (power, heat) or faster (cards that boost) had peaks in proportion.
"""

from __future__ import annotations

from rooflight.hardware.dense import peaks
from rooflight.hardware.model import Gpu

#: No GPU runs faster: a figure beyond it is in Hz or kHz.
FASTEST_MHZ = 10_000


def stated_mhz(gpu: Gpu, dtype: str, *, matrix: bool) -> float | None:
    """The clock at which a peak of ``gpu`` is stated, ``None`` when it is not known.

    fp64 on the matrix units is stated at the boost clock: H100 SXM 132 SM x 256 FLOP x 1980 MHz = 66.9
    TFLOP/s, bf16 at 1830: 132 x 4096 x 1830 MHz = 989.4.  A peak that the firmware caps has no clock.
    """
    if gpu.capped:
        return None
    on_matrix_units = matrix and dtype in gpu.matrix and dtype != "fp64"
    return (gpu.tensor_mhz if on_matrix_units else None) or gpu.boost_mhz


def at_clock(gpu: Gpu, sm_mhz: float, *, matrix: bool = True) -> dict[str, float]:
    """Peaks by dtype at the SM clock ``sm_mhz``, TFLOP/s (int8: TOP/s): those that matrix work can ask
    for, or those of the ordinary units.  Without those whose clock is not known."""
    if not 0 < sm_mhz <= FASTEST_MHZ:
        return {}
    table = peaks(gpu) if matrix else gpu.vector
    stated = {d: stated_mhz(gpu, d, matrix=matrix) for d in table}
    return {d: peak * sm_mhz / mhz for d, peak in table.items() if (mhz := stated[d])}
