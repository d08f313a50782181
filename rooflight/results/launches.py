"""One row per GPU event: what the event plane keeps beside the summary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflight.attribution.launches import Links
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import Kernel
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, values_at
from rooflight.trace.timeline import Timeline

#: Columns of a launch: ns are on the recording's own clock, -1 is none.
Columns = dict[str, NDArray[Any]]


def launch_columns(
    timeline: Timeline,
    links: Links,
    groups: Groups,
    place: list[int],
    rows: list[Kernel],
    steps: list[StepSpan],
) -> Columns:
    """The valid GPU events in order of their start.

    ``kernel_row`` indexes the kernel table; ``launch_ns`` is the start of the API call; ``step`` is
    the number of the step whose interval holds the launch (the event's own start where it has none).
    """
    gpu, host = timeline.gpu, timeline.host
    events = timeline.valid_gpu[np.argsort(gpu.start[timeline.valid_gpu], kind="stable")]
    launch = links.launch[events]
    launched = values_at(host.start, launch, -1)
    row = np.array(place, np.int32)[groups.of_event[events]] if place else np.empty(0, np.int32)
    streams = np.array([key[3] for key in timeline.stream_keys], object)
    return {
        "start_ns": gpu.start[events],
        "dur_ns": gpu.end[events] - gpu.start[events],
        "launch_ns": launched,
        "kind": _texts([k.name.lower() for k in GpuKind], gpu.kind[events]),
        "device": _texts(timeline.device_keys, gpu.device[events]),
        "stream": streams[gpu.stream[events]] if streams.size else np.empty(0, object),
        "correlation": gpu.correlation[events],
        "name": _texts(timeline.names, gpu.name[events]),
        "bytes": gpu.bytes[events],
        "kernel_row": row,
        "regime": _texts([k.regime for k in rows], row),
        "step": _step(steps, np.where(launched >= 0, launched, gpu.start[events])),
    }


def _texts(table: Any, index: NDArray[Any]) -> NDArray[Any]:
    column: NDArray[Any] = np.array([*table, ""], object)[index]
    return column


def _step(steps: list[StepSpan], at: I64) -> I64:
    """The step that holds each instant, the later of two that do; -1 outside of steps."""
    result = np.full(at.size, -1, np.int64)
    if not steps:
        return result
    by_start = sorted(steps, key=lambda s: s.start)
    found = np.searchsorted(np.array([s.start for s in by_start]), at, side="right") - 1
    inside = (found >= 0) & (at < np.array([s.end for s in by_start])[found])
    result[inside] = np.array([s.n for s in by_start])[found[inside]]
    return result
