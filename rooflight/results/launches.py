"""One row per GPU event: what the event plane keeps beside the summary.

Enough to draw the recording's device side without the raw trace: where and when each event ran, what
launched it, how, and what it cost.  An entry that is not known is -1 in a column of whole numbers, NaN in
``bound_us`` and the empty text elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflight.attribution.launches import Links
from rooflight.attribution.phases import PHASES, phases
from rooflight.attribution.steps import StepSpan
from rooflight.cost.launches import LaunchCosts
from rooflight.protocol import Kernel
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, values_at
from rooflight.trace.timeline import Timeline

#: Columns of a launch: ns are on the recording's own clock, -1 is none.
Columns = dict[str, NDArray[Any]]


def launch_columns(
    timeline: Timeline,
    links: Links,
    costs: LaunchCosts,
    groups: Groups,
    place: list[int],
    rows: list[Kernel],
    steps: list[StepSpan],
) -> Columns:
    """The valid GPU events in order of their start.

    ``kernel_row`` indexes the kernel table; ``launch_ns`` and ``launch_dur_ns`` are those of the API call
    on ``thread``; ``step`` is the number of the step whose interval holds the launch (the event's own
    start where it has none).  ``bytes`` is the recorded size of a copy, ``moved_bytes`` what the cost
    model says that the event reads and writes in device memory.
    """
    gpu, host = timeline.gpu, timeline.host
    events = timeline.valid_gpu[np.argsort(gpu.start[timeline.valid_gpu], kind="stable")]
    launch = links.launch[events]
    launched = values_at(host.start, launch, -1)
    row = np.array(place, np.int32)[groups.of_event[events]] if place else np.empty(0, np.int32)
    return {
        "start_ns": gpu.start[events],
        "dur_ns": gpu.end[events] - gpu.start[events],
        "launch_ns": launched,
        "launch_dur_ns": np.where(launch >= 0, values_at(host.end, launch, 0) - launched, -1),
        "kind": _texts([k.name.lower() for k in GpuKind], gpu.kind[events]),
        "device": _texts(timeline.device_keys, gpu.device[events]),
        "stream": _texts([key[3] for key in timeline.stream_keys], gpu.stream[events]),
        "thread": _texts(
            [f"{pid}/{tid}" for pid, tid in timeline.threads], values_at(host.thread, launch, -1)
        ),
        "correlation": gpu.correlation[events],
        "graph_node": np.where(gpu.graph_node[events] == 0, -1, gpu.graph_node[events]),
        "name": _texts(timeline.names, gpu.name[events]),
        "op": _texts(timeline.names, values_at(host.name, links.op[events], -1)),
        "module": _texts(timeline.names, values_at(host.name, links.module[events], -1)),
        "phase": _texts(PHASES, phases(timeline, links)[events]),
        "bytes": gpu.bytes[events],
        "kernel_row": row,
        "regime": _texts([k.regime for k in rows], row),
        "step": _step(steps, np.where(launched >= 0, launched, gpu.start[events])),
        **_geometry(timeline, gpu.shape[events]),
        **_work(costs, groups, events),
    }


def _geometry(timeline: Timeline, index: NDArray[Any]) -> Columns:
    shapes = [timeline.launch_shape(i) for i in range(len(timeline.shapes))]
    return {
        "grid": _texts([_sizes(s.grid) for s in shapes], index),
        "block": _texts([_sizes(s.block) for s in shapes], index),
        "registers": _counts(shapes, lambda s: s.registers, index),
        "shared_memory": _counts(shapes, lambda s: s.shared_memory, index),
    }


def _sizes(dims: Sequence[int] | None) -> str:
    return "" if dims is None else " ".join(map(str, dims))


def _counts(rows: Sequence[Any], of: Callable[[Any], int | None], index: NDArray[Any]) -> I64:
    """A count of each row of a table, at ``index``; -1 where there is none."""
    known: I64 = np.array([*(_count(of(row)) for row in rows), -1], np.int64)
    return known.take(index)


def _count(value: int | None) -> int:
    return value if value is not None and 0 <= value < 1 << 63 else -1


def _work(costs: LaunchCosts, groups: Groups, events: I64) -> Columns:
    index = costs.index[events]
    bounds = [np.nan if g.bound.bound_ns is None else g.bound.bound_ns / 1e3 for g in groups.rows]
    return {
        "flops": _counts(costs.costs, lambda c: c.flops, index),
        "moved_bytes": _counts(costs.costs, lambda c: c.bytes, index),
        "link_bytes": _counts(costs.costs, lambda c: c.link_bytes, index),
        "origin": _texts([c.origin for c in costs.costs], index),
        "bound_us": np.array([*bounds, np.nan])[groups.of_event[events]],
    }


def _texts(table: Sequence[str], index: NDArray[Any]) -> NDArray[Any]:
    """The text of each row; that of -1 is empty."""
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
