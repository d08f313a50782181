"""Which op the GPU work belongs to, and what launching it took (DEFINITIONS §5, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import measure, union
from rooflight.attribution.launches import Links
from rooflight.attribution.phases import PHASES
from rooflight.attribution.replays import GRAPH_LAUNCHES
from rooflight.protocol import Attribution, LaunchDelay
from rooflight.roofline.groups import Group
from rooflight.trace.tables import I8, GpuKind, HostKind, among, distinct, rows_by
from rooflight.trace.timeline import Timeline
from rooflight.units import us


def attribution_rows(groups: Sequence[Group]) -> list[Attribution]:
    """GPU time per kernel name and op, largest first."""
    total: dict[tuple[str, str | None], list[int]] = {}
    for g in groups:
        entry = total.setdefault((g.name.name, g.op), [0, 0])
        entry[0] += int(g.rows.size)
        entry[1] += g.total_ns
    rows = [Attribution(name, op, count, us(ns)) for (name, op), (count, ns) in total.items()]
    return sorted(rows, key=lambda r: (-r.time_us, r.kernel, r.op or ""))


def phases_us(timeline: Timeline, of: I8) -> dict[str, float]:
    """Kernel time by the phase that launched it, ``of`` each GPU event; phases without any are left out."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    kernels = rows[gpu.kind[rows] == GpuKind.KERNEL]
    time = np.zeros(len(PHASES), np.int64)
    np.add.at(time, of[kernels], gpu.end[kernels] - gpu.start[kernels])
    return {phase: us(ns) for phase, ns in zip(PHASES, time.tolist(), strict=True) if ns}


@dataclass(frozen=True, slots=True)
class Delays:
    """Launch to kernel start; impossible ones (negative) count in ``negative`` and nowhere else."""

    by_kernel: dict[str, float | None]
    summary: LaunchDelay
    negative: int


def launch_delays(timeline: Timeline, links: Links) -> Delays:
    """Delays of the kernels that have a launch."""
    gpu = timeline.gpu
    rows = timeline.valid_gpu
    rows = rows[(gpu.kind[rows] == GpuKind.KERNEL) & (links.launch[rows] >= 0)]
    delay = gpu.start[rows] - timeline.host.start[links.launch[rows]]
    possible = delay >= 0
    by_kernel: dict[str, float | None] = {}
    for name, at in rows_by(gpu.name[rows]):
        mine = delay[at][possible[at]]
        by_kernel[timeline.names[name]] = us(round(float(mine.mean()))) if mine.size else None
    known = delay[possible]
    summary = LaunchDelay(n=int(known.size))
    if known.size:
        summary.mean_us = us(round(float(known.mean())))
        summary.p50_us = us(round(float(np.median(known))))
        summary.max_us = us(int(known.max()))
    return Delays(by_kernel, summary, int(np.count_nonzero(~possible)))


def host_api_ns(timeline: Timeline) -> int:
    """Time inside runtime and driver calls: per thread the union, summed over threads, in ns."""
    host = timeline.host
    api = np.flatnonzero((host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER))
    calls = ((host.start[api[at]], host.end[api[at]]) for _, at in rows_by(host.thread[api]))
    return sum(measure(union(start, end)) for start, end in calls)


def graph_launches(timeline: Timeline) -> tuple[int, int]:
    """Graph launches, and those of them that have at least one GPU event."""
    host = timeline.host
    api = (host.kind == HostKind.RUNTIME) | (host.kind == HostKind.DRIVER)
    rows = np.flatnonzero(api & np.isin(host.name, timeline.name_ids(*GRAPH_LAUNCHES)))
    # The runtime call and the driver call inside it are one launch.
    numbered = distinct(host.correlation[rows][host.correlation[rows] >= 0])
    without = int(np.count_nonzero(host.correlation[rows] < 0))
    recorded = among(numbered, timeline.gpu.correlation)
    return int(numbered.size) + without, int(np.count_nonzero(recorded))
