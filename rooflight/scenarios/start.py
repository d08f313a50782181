"""What every kernel takes whatever it does: to be started on all units, and to end on all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.hardware.catalogue import by_id
from rooflight.protocol import Roofs

#: µs: the first decile of elementwise, copy, fill, norm, layout and reduction kernels in public recordings
#: with a resolution of ns, median over these.  NVIDIA: HTA's V100 1.95 and A100 2.21.  CDNA: MI300X 1.99
#: (normalization layers), 2.36 (ResNet), 4.21 (Flux), 4.53 (Qwen3 decode), 7.14 (vLLM decode), MI210 3.52,
#: MI250 3.36.  Read 2026-12-02.  A part of several dies starts and ends later than one of one.
_START_US = {"NVIDIA": 2.1, "CDNA": 3.5}


@dataclass(frozen=True, slots=True)
class Start:
    """Start and end of a kernel on the recorded and on the asked device, in µs."""

    recorded_us: float = 0.0
    asked_us: float = 0.0

    def moved(self, launch_us: F64, rest: F64 | float) -> F64 | float:
        """The factor of each launch's time when what is not start or end takes ``rest`` times as long; a
        launch that is shorter than these is nothing else."""
        if not self.recorded_us:
            return rest
        own = np.where(launch_us > 0, self.recorded_us / np.maximum(launch_us, self.recorded_us), 0.0)
        return (1 - own) * rest + own * self.asked_us / self.recorded_us


NO_START = Start()


def starts(recorded: Roofs, asked: Roofs) -> Start:
    """Of both devices; nothing where it is not known of either, or the same for both."""
    here, there = _start_us(recorded), _start_us(asked)
    return NO_START if here is None or there is None or here == there else Start(here, there)


def _start_us(roofs: Roofs) -> float | None:
    """By maker and, of AMD's, the kind of unit; several devices may be meant that have the same."""
    kinds = {_kind(one) for one in (roofs.gpu_id or "").split("+")}
    return _START_US.get(kinds.pop() or "") if len(kinds) == 1 else None


def _kind(gpu_id: str) -> str | None:
    gpu = by_id().get(gpu_id)
    if gpu is None:
        return None
    return "CDNA" if gpu.arch.startswith("CDNA") else gpu.vendor
