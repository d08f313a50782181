"""A workload under torch.profiler: steps in, a trace file out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.device import Device, import_torch
from agent.workloads import Place, Workload

#: The profiler's own start makes the first recorded step slow: one step is waited out before it.
WAIT = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """``steps`` are recorded, ``warmup`` (at least 1) run before them under the profiler and are not."""

    steps: int
    warmup: int
    size: str = "medium"


@dataclass(frozen=True, slots=True)
class Recording:
    """The trace file and how long the whole run took, in seconds."""

    trace: Path
    seconds: float


def record(workload: Workload, device: Device, plan: Plan, trace: Path) -> Recording:
    """Run ``workload`` and write its trace (.json.gz) to ``trace``; the recorded steps are
    ``ProfilerStep#`` rows.  Shapes are recorded, since costs are made from them."""
    import_torch()
    started = time.monotonic()
    step = workload.build(Place(device.place, plan.size))
    with _profiler(device, plan, trace) as profiler:
        for _ in range(WAIT + plan.warmup + plan.steps):
            step()
            profiler.step()
    return Recording(trace, time.monotonic() - started)


def _profiler(device: Device, plan: Plan, trace: Path) -> Any:
    from torch.profiler import ProfilerActivity, profile, schedule

    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * device.is_gpu
    return profile(
        activities=activities,
        schedule=schedule(wait=WAIT, warmup=plan.warmup, active=plan.steps, repeat=1),
        on_trace_ready=_exporter(trace),
        record_shapes=True,
    )


def _exporter(trace: Path) -> Callable[[Any], None]:
    def export(profiler: Any) -> None:
        trace.parent.mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(trace))

    return export
