"""One rank: every stage of the road in order, and its result as the protocol's row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.idle import HostActivity
from rooflight.attribution.launches import Links, link
from rooflight.attribution.steps import StepSpan, find_steps
from rooflight.cost.launches import attach
from rooflight.hardware import cpu_roofs
from rooflight.kernels import classify, is_communication
from rooflight.protocol import Calibration, Rank, Step
from rooflight.regimes.partition import RANK, partition
from rooflight.regimes.quality import grade
from rooflight.regimes.steps import run_regime, step_regime, summed, unexplained_idle
from rooflight.results import quality
from rooflight.results.attribution import attribution_rows, graph_launches, host_api_ns, launch_delays
from rooflight.results.cpu import cpu_device
from rooflight.results.devices import device_figures, kernel_sum
from rooflight.results.kernels import kernel_rows, verdicts
from rooflight.results.launches import Columns, launch_columns
from rooflight.results.roofs import device_roofs
from rooflight.results.steps import StepFigures, parts_us, step_figures, step_row
from rooflight.roofline.groups import group_launches
from rooflight.trace.tables import I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import us


@dataclass(frozen=True, slots=True)
class Options:
    """``gpu`` overrides the recorded device name; ``calibrations`` give measured ceilings."""

    gpu: str | None = None
    calibrations: tuple[Calibration, ...] = ()


def analyse_rank(timeline: Timeline, options: Options) -> tuple[Rank, Columns]:
    """The result of one recording, and its launches in columns."""
    links, steps = link(timeline), find_steps(timeline)
    named = {i: classify(timeline.names[i]) for i in np.unique(timeline.gpu.name).tolist()}
    costs = attach(timeline, links, named)
    devices = device_roofs(timeline, options.gpu, options.calibrations)
    groups = group_launches(timeline, links, costs, named, devices.roofs)
    is_comm = _communication(timeline)
    regimes = verdicts(timeline, groups.rows, is_comm, devices.roofs)
    part = np.array([RANK.get(v.regime, RANK["unknown"]) for v in regimes] or [0], np.int64)
    window = _window(timeline, steps)
    activity = HostActivity(timeline)
    partitions = {
        d: partition(timeline, links, steps, d, part[groups.of_event], is_comm, window, activity)
        for d in range(len(timeline.device_keys))
    }
    headline = _headline(timeline)
    figures = (
        step_figures(timeline, links, steps, partitions, headline, groups, regimes)
        if headline is not None
        else []
    )
    whole = {d: p.parts(*window) for d, p in partitions.items()}
    delays = launch_delays(timeline, links)
    seen = quality.Seen(
        timeline=timeline,
        links=links,
        groups=groups.rows,
        regimes=regimes,
        is_comm=is_comm,
        roofs=devices.roofs,
        sku_inferred=devices.inferred,
        n_steps=len(steps),
        steps_without_gpu=sum(not f.touched for f in figures),
        graphs=graph_launches(timeline),
        negative_delays=delays.negative,
        unexplained_idle=_unexplained(figures, whole, headline),
    )
    by_origin = quality.kernel_ns_by_origin(seen)
    facts = quality.facts(seen, by_origin)
    judged = grade(facts)
    rows, place = kernel_rows(timeline, groups.rows, regimes)
    rank = Rank(
        rank=timeline.meta.rank or 0,
        grade=judged.grade,
        verdict_withheld=judged.withheld,
        grade_reasons=judged.reasons,
        flags=quality.flags(seen, facts),
        invalid_events=timeline.invalid_events,
        devices={
            key: device_figures(timeline, links, is_comm, d, devices.names[d])
            for d, key in enumerate(timeline.device_keys)
        },
        roofs=dict(zip(timeline.device_keys, devices.roofs, strict=True)),
        n_steps=len(steps),
        steps_without_gpu=[f.span.n for f in figures if not f.touched],
        steps_total_us=us(sum(s.end - s.start for s in steps)) if steps else None,
        parts_us={timeline.device_keys[d]: parts_us(p) for d, p in whole.items()},
        memory=timeline.memory,
        attribution=attribution_rows(timeline, groups.rows),
        launch_delay_us=delays.by_kernel,
        launch_delay=delays.summary,
        host_api_us=us(host_api_ns(timeline)),
        graph_launches=seen.graphs[0],
        graph_launches_with_kernels=seen.graphs[1],
        coverage=quality.coverage(by_origin),
        kernels=rows,
        first_kernel_wall_ns=_first_kernel(timeline),
        software=timeline.meta.software,
        host=timeline.meta.host,
    )
    _attributed(rank, timeline, links)
    doubt = _share(by_origin["unknown"] + by_origin["inferred"], facts.kernel_ns)
    if headline is None:
        _cpu(rank, timeline, steps, options)
    else:
        assumed = quality.factor_assumed(devices.roofs[headline])
        _judge(rank, timeline, figures, whole, headline, doubt, assumed)
    return rank, launch_columns(timeline, links, groups, place, rows, steps)


def _judge(
    rank: Rank,
    timeline: Timeline,
    figures: Sequence[StepFigures],
    whole: dict[int, dict[str, int]],
    headline: int,
    doubt: float,
    assumed: bool,
) -> None:
    """Verdicts of the steps and of the run; without steps that of the whole recording."""
    rank.busy_pct = rank.devices[timeline.device_keys[headline]].busy_pct
    for f in figures:
        verdict = step_regime(
            f.parts[headline],
            grade=rank.grade,
            unknown_inferred_frac=doubt,
            withheld=rank.verdict_withheld,
            factor_assumed=assumed,
        )
        rank.steps.append(step_row(timeline, f, verdict, headline))
    run = run_regime(
        [f.parts[headline] for f in figures] or [whole[headline]],
        grade=rank.grade,
        unknown_inferred_frac=doubt,
        withheld=rank.verdict_withheld,
        factor_assumed=assumed,
    )
    rank.regime, rank.regime_confidence, rank.regime_reason = run.regime, run.confidence, run.reason


def _cpu(rank: Rank, timeline: Timeline, steps: Sequence[StepSpan], options: Options) -> None:
    """No GPU work: the host CPU is the device, kept apart."""
    roofs = cpu_roofs(max((c for c in options.calibrations if c.kind == "cpu"), key=_when, default=None))
    found = cpu_device(timeline, steps, roofs, grade=rank.grade, withheld=rank.verdict_withheld)
    if found is None:
        return
    rank.cpu = found
    # The steps were recorded all the same; what a GPU did in them is unknown.
    rank.steps = [Step(n=s.n, step_time_us=us(s.end - s.start), start_us=us(s.start)) for s in steps]


def _when(c: Calibration) -> str:
    return c.measured_at


def _communication(timeline: Timeline) -> Mask:
    gpu = timeline.gpu
    by_name = np.zeros(len(timeline.names) + 1, bool)
    for i in np.unique(gpu.name).tolist():
        by_name[i] = is_communication(timeline.names[i])
    mask: Mask = (gpu.kind == GpuKind.KERNEL) & (by_name[gpu.name] | (gpu.comm >= 0))
    return mask


def _window(timeline: Timeline, steps: Sequence[StepSpan]) -> tuple[int, int]:
    """From the first start to the last end of GPU work and steps."""
    rows = timeline.valid_gpu
    starts = [*timeline.gpu.start[rows].tolist(), *(s.start for s in steps)]
    ends = [*timeline.gpu.end[rows].tolist(), *(s.end for s in steps)]
    return (min(starts), max(ends)) if starts else (0, 0)


def _headline(timeline: Timeline) -> int | None:
    """The device with most kernel time, the lowest of several; ``None`` without GPU work."""
    present = np.unique(timeline.gpu.device[timeline.valid_gpu]).tolist()
    return min(
        present, key=lambda d: (-kernel_sum(timeline, d), _order(timeline.device_keys[d])), default=None
    )


def _order(key: str) -> tuple[int, str]:
    return (int(key), key) if key.isascii() and key.isdigit() and len(key) < 10 else (1 << 62, key)


def _unexplained(
    figures: Sequence[StepFigures], whole: dict[int, dict[str, int]], headline: int | None
) -> bool:
    if headline is None:
        return False
    return unexplained_idle(summed([f.parts[headline] for f in figures]) if figures else whole[headline])


def _attributed(rank: Rank, timeline: Timeline, links: Links) -> None:
    rows = timeline.valid_gpu
    length = timeline.gpu.end[rows] - timeline.gpu.start[rows]
    has_op = links.op[rows] >= 0
    kernels = timeline.gpu.kind[rows] == GpuKind.KERNEL
    rank.attributed_kernels = int(np.count_nonzero(has_op & kernels))
    rank.unattributed_us = us(int(length[~has_op].sum()))
    by_op: dict[str, float] = {}
    for row in rank.attribution:
        if row.op is not None:
            by_op[row.op] = round(by_op.get(row.op, 0.0) + row.time_us, 3)
    rank.attribution_op_time_us = by_op
    known = [k.flops for k in rank.kernels if k.flops is not None and k.kind == "kernel"]
    rank.flops_total = sum(known) if known else None


def _first_kernel(timeline: Timeline) -> str | None:
    rows = timeline.valid_gpu
    starts: I64 = timeline.gpu.start[rows[timeline.gpu.kind[rows] == GpuKind.KERNEL]]
    return str(timeline.meta.base_ns + int(starts.min())) if starts.size else None


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
