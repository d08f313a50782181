"""Steps: the profiler's own marks (DEFINITIONS §6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import HostKind
from rooflight.trace.timeline import Timeline

_STEP = re.compile(r"ProfilerStep#(\d+)")


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A step: its number, its interval in ns and the thread that ran it."""

    n: int
    start: int
    end: int
    thread: int


def find_steps(timeline: Timeline) -> list[StepSpan]:
    """The ``ProfilerStep#N`` annotations of the host, by number; copies on the GPU are none."""
    numbers = {
        i: int(found[1])
        for i, name in enumerate(timeline.names)
        if (found := _STEP.fullmatch(name)) and len(found[1]) < 18
    }
    if not numbers:
        return []
    host = timeline.host
    rows = np.flatnonzero((host.kind == HostKind.ANNOTATION) & np.isin(host.name, list(numbers)))
    spans = [
        StepSpan(numbers[int(host.name[r])], int(host.start[r]), int(host.end[r]), int(host.thread[r]))
        for r in rows
    ]
    return sorted(spans, key=lambda s: (s.n, s.start))
