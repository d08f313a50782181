"""Steps: the profiler's own marks (DEFINITIONS §6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import I64, HostKind
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
    spans = [
        StepSpan(numbers[int(host.name[r])], int(host.start[r]), int(host.end[r]), int(host.thread[r]))
        for r in annotation_rows(timeline, numbers)
    ]
    return sorted(spans, key=lambda s: (s.n, s.start, s.end, timeline.threads[s.thread]))


def annotation_rows(timeline: Timeline, names: Iterable[int]) -> I64:
    """The host's annotations that have one of these names, given by index."""
    host = timeline.host
    return np.flatnonzero((host.kind == HostKind.ANNOTATION) & np.isin(host.name, list(names)))
