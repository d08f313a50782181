"""What the runs list shows of an analysis."""

from __future__ import annotations

from typing import Any

import numpy as np

from rooflight.protocol import PARTS, CpuStep, Document, Rank, Step
from rooflight.units import NS_PER_US

_GRADES = ("unreliable", "usable", "complete")


def summary(document: Document) -> dict[str, Any]:
    """Columns of the run's row, taken from its lowest rank; the grade is the worst of all ranks."""
    if not document.ranks:
        return {"source": document.source}
    rank = min(document.ranks, key=lambda r: r.rank)
    # Steps of a recording without GPU work have no parts; those of its CPU do.
    cpu = None if rank.devices else rank.cpu
    steps: list[Step] | list[CpuStep] = cpu.steps if cpu and cpu.steps else rank.steps
    verdict = rank if rank.regime is not None or rank.cpu is None else rank.cpu
    grades = [r.grade for r in document.ranks if r.grade in _GRADES]
    return {
        "source": document.source,
        "host": rank.host,
        "device_name": device_name(rank),
        "n_steps": rank.n_steps or len(steps),
        "step_time_p50_us": _median_us([s.step_time_us for s in steps]),
        "regime": verdict.regime,
        "regime_confidence": verdict.regime_confidence,
        "grade": min(grades, key=_GRADES.index) if grades else None,
        "parts_us": _mean_parts(steps),
    }


def device_name(rank: Rank) -> str | None:
    """The device as the trace or the catalogue names it; the CPU's for a run without GPU work.

    No trace names its CPU: without a calibration that does, it is ``CPU``.
    """
    names = [d.name for d in rank.devices.values()] + [r.name for r in rank.roofs.values()]
    if rank.cpu is not None:
        names += [rank.cpu.name, rank.cpu.roof.name]
        if not rank.devices:
            names.append("CPU")
    return next((n for n in names if n), None)


def _median_us(times: list[float]) -> float | None:
    return round(float(np.median(times)), 3) if times else None


def _mean_parts(steps: list[Step] | list[CpuStep]) -> dict[str, float] | None:
    """Mean per step, summed in whole nanoseconds so that the order of the steps does not matter."""
    rows = [s.parts_us for s in steps if s.parts_us is not None]
    if not rows:
        return None
    sums = {part: sum(round(getattr(p, part) * NS_PER_US) for p in rows) for part in PARTS}
    return {part: round(ns / len(rows) / NS_PER_US, 3) for part, ns in sums.items()}
