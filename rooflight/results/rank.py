"""One rank: the stages of its recording as the protocol's row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooflight.attribution.collectives import collective_calls
from rooflight.attribution.intervals import EMPTY, intersection
from rooflight.protocol import Cpu, CpuStep, Rank, Step
from rooflight.regimes.quality import grade
from rooflight.regimes.steps import StepVerdict, incomplete, rests_on, step_regime, summed
from rooflight.results import quality
from rooflight.results.attribution import attribution_rows, host_api_ns, phases_us
from rooflight.results.buckets import buckets
from rooflight.results.caches import cache_traffic
from rooflight.results.communication import communication
from rooflight.results.contention import contention
from rooflight.results.cpu import cpu_device
from rooflight.results.devices import device_figures
from rooflight.results.findings import Advice
from rooflight.results.gaps import gap_columns
from rooflight.results.idle import idle_rows
from rooflight.results.launches import Columns, launch_columns
from rooflight.results.phases import phase_columns, phase_rows
from rooflight.results.result import Advised, Exposed, RankResult
from rooflight.results.stages import Stages
from rooflight.results.steps import parts_us, percentiles_us, step_row
from rooflight.trace.tables import GpuKind
from rooflight.trace.timeline import Timeline
from rooflight.units import us

#: Eleven days after 1970: no clock that starts with the machine or the program is taken for the wall's.
_ANY_EPOCH_NS = 10**15


def analyse_rank(s: Stages) -> RankResult:
    """The result of one recording, as if it were all there is of the run."""
    rank = _rank(s)
    rank.kernels = s.table[0]
    rank.findings, rank.findings_total_us = s.findings.rows, s.findings.total_us
    rank.caches = cache_traffic(s.groups, s.counted, s.table[1])
    rank.idle = idle_rows(s.timeline, s.idle, s.spans)
    _devices(rank, s)
    _attribution(rank, s)
    if s.headline is None:
        _on_cpu(rank, s)
    else:
        _on_gpu(rank, s, s.headline)
    rank.percentiles_us = percentiles_us(rank.cpu.steps if rank.cpu else rank.steps or rank.inferred_steps)
    meta = s.timeline.meta
    calls = collective_calls(s.timeline, s.names, s.is_comm)
    rank.communication, rank.communication_rows, messages = communication(s, calls)
    rank.contention = contention(s.timeline, s.groups, s.is_comm, s.table[1])
    exposed = _exposed(s)
    return RankResult(
        source=s.timeline.source,
        rank=rank,
        world_size=meta.world_size,
        base_ns=meta.base_ns,
        facts=s.quality,
        calls=calls,
        exposed=exposed,
        messages=messages,
        advised=_advised(s.findings, exposed),
    )


def launches(s: Stages) -> Columns:
    """The GPU events of the recording in columns."""
    rows, place = s.table
    return launch_columns(s.timeline, s.links, s.costs, s.groups, place, rows, s.steps)


def gaps(s: Stages) -> Columns:
    """The idle gaps of the recording in columns."""
    return gap_columns(s.timeline, s.links, s.gaps, s.idle, s.spans)


def phase_table(s: Stages) -> Columns:
    """The steps of the recording by phase, in columns."""
    return phase_columns(s.phase_parts, s.spans)


def regrade(result: RankResult, missing_ranks: int) -> None:
    """Ranks of the run that are missing take the best grade away, and the verdicts that rest on it."""
    if not missing_ranks:
        return
    rank, facts = result.rank, replace(result.facts, missing_ranks=missing_ranks)
    judged = grade(facts)
    rank.grade, rank.grade_reasons = judged.grade, judged.reasons
    verdicts: list[Rank | Step | Cpu | CpuStep] = [rank, *rank.steps, *rank.inferred_steps]
    for verdict in [*verdicts, rank.cpu, *rank.cpu.steps] if rank.cpu else verdicts:
        verdict.regime_confidence = incomplete(verdict.regime_confidence)


def _rank(s: Stages) -> Rank:
    timeline, judged = s.timeline, s.grade
    return Rank(
        rank=timeline.meta.rank or 0,
        grade=judged.grade,
        verdict_withheld=judged.withheld,
        grade_reasons=judged.reasons,
        flags=s.flags,
        invalid_events=timeline.invalid_events,
        buckets=buckets(timeline, s.links),
        n_steps=len(s.steps),
        steps_without_gpu=[f.span.n for f in s.figures if not f.touched],
        steps_total_us=us(sum(p.end - p.start for p in s.steps)) if s.steps else None,
        memory=timeline.memory,
        graph_launches=s.seen.graphs[0],
        graph_launches_with_kernels=s.seen.graphs[1],
        coverage=quality.coverage(s.ns_by_origin),
        first_kernel_wall_ns=_first_kernel(timeline),
        clock_base_ns=_base(s),
        software=timeline.meta.software,
        host=timeline.meta.host,
    )


def _devices(rank: Rank, s: Stages) -> None:
    for d, key in enumerate(s.timeline.device_keys):
        rank.devices[key] = device_figures(s.timeline, s.links, s.is_comm, d, s.devices.names[d])
        rank.roofs[key] = s.devices.roofs[d]
        rank.parts_us[key] = parts_us(s.whole[d])


def _attribution(rank: Rank, s: Stages) -> None:
    timeline = s.timeline
    rows = timeline.valid_gpu
    length = timeline.gpu.end[rows] - timeline.gpu.start[rows]
    has_op = s.links.op[rows] >= 0
    rank.attribution = attribution_rows(s.groups.rows)
    rank.attributed_kernels = int(np.count_nonzero(has_op & (timeline.gpu.kind[rows] == GpuKind.KERNEL)))
    rank.unattributed_us = us(int(length[~has_op].sum()))
    for row in rank.attribution:
        if row.op is not None:
            so_far = rank.attribution_op_time_us.get(row.op, 0.0)
            rank.attribution_op_time_us[row.op] = round(so_far + row.time_us, 3)
    rank.phases_us = phases_us(timeline, s.phases)
    rank.phase_parts_us = phase_rows(s.phase_parts)
    rank.launch_delay_us, rank.launch_delay = s.delays.by_kernel, s.delays.summary
    rank.host_api_us = us(host_api_ns(timeline))
    known = [k.flops for k in rank.kernels if k.flops is not None and k.kind == "kernel"]
    rank.flops_total = sum(known) if known else None


def _on_gpu(rank: Rank, s: Stages, headline: int) -> None:
    """Verdicts of the steps and of the run; without steps that of the whole recording."""
    assumed = quality.factor_assumed(s.seen, headline)
    rank.busy_pct = rank.devices[s.timeline.device_keys[headline]].busy_pct

    def judged(parts: dict[str, int]) -> StepVerdict:
        verdict = step_regime(
            parts,
            grade=rank.grade,
            unknown_inferred_frac=s.doubt,
            withheld=rank.verdict_withheld,
            factor_assumed=assumed,
        )
        return rests_on(verdict, s.inferred.basis) if s.inferred else verdict

    _steps(rank, s, [step_row(s.timeline, f, judged(f.parts[headline]), headline) for f in s.figures])
    run = judged(summed([f.parts[headline] for f in s.figures] or [s.whole[headline]]))
    rank.regime, rank.regime_confidence, rank.regime_reason = run.regime, run.confidence, run.reason


def _on_cpu(rank: Rank, s: Stages) -> None:
    """No GPU work: the host CPU is the device, kept apart; what a GPU did in the steps is unknown."""
    _steps(rank, s, [Step(n=p.n, step_time_us=us(p.end - p.start), start_us=us(p.start)) for p in s.spans])
    if s.cpu is not None:
        rank.cpu = cpu_device(s.cpu, s.steps, grade=rank.grade, doubt=s.doubt, withheld=rank.verdict_withheld)


def _steps(rank: Rank, s: Stages, rows: list[Step]) -> None:
    """Rows of steps go where they belong: none that was inferred is among those that were marked."""
    if s.inferred is None:
        rank.steps = rows
        return
    rank.inferred_steps = rows
    for row in rows:
        row.inferred_from = s.inferred.source


def _exposed(s: Stages) -> Exposed:
    if s.headline is None:
        return Exposed(EMPTY[:, 0], EMPTY[:, 1], EMPTY[:, 0], EMPTY[:, 1])
    spans = s.partitions[s.headline].communication
    bounds = np.array([(f.span.start, f.span.end) for f in s.figures] or [s.window], np.int64)
    return Exposed(spans[:, 0], spans[:, 1], bounds[:, 0], bounds[:, 1])


def _advised(advice: Advice, exposed: Exposed) -> Advised:
    when = intersection(advice.when, np.column_stack((exposed.start, exposed.end)))
    return Advised(advice.total_us, when[:, 0], when[:, 1])


def _first_kernel(timeline: Timeline) -> str | None:
    rows = timeline.valid_gpu
    starts = timeline.gpu.start[rows[timeline.gpu.kind[rows] == GpuKind.KERNEL]]
    return str(timeline.meta.base_ns + int(starts.min())) if starts.size else None


def _base(s: Stages) -> str | None:
    """Older recordings have no base and are on the wall clock itself, others without one are on none."""
    timeline = s.timeline
    starts = timeline.gpu.start[timeline.valid_gpu[:1]].tolist() + [p.start for p in s.steps[:1]]
    on_the_wall = any(start > _ANY_EPOCH_NS for start in starts)
    return str(timeline.meta.base_ns) if timeline.meta.base_ns or on_the_wall else None
