"""The work of one job: traces in, one analysis out.  Runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.blobs import BlobStore
from app.db import Database
from app.documents import unpack
from app.events.parquet import EventStore
from app.ingest.kept import fitting, keep, kept
from app.ingest.merge import merge
from app.ingest.persist import store
from app.ingest.storable import storable
from app.ingest.traces import Trace, completed, is_execution, read, with_beside
from app.jobs import queue
from app.models import CalibrationRow, Job, Profile, Run, utcnow
from app.models.base import new_id
from app.models.jobs import DONE, REFUSED
from app.models.profiles import EXECUTION, TRACE
from app.problems import Conflict, problem_of
from app.runs.queries import lock_run
from app.settings import Settings
from rooflight.analysis import combine
from rooflight.calibration import Calibration
from rooflight.errors import Refused, RooflightError
from rooflight.protocol import Document, Rank
from rooflight.readers.limits import Limits
from rooflight.results.result import RankResult

Columns = Mapping[str, Any]
#: Trace, limits, calibrations → what is left of its analysis, and its launches.
Analyzer = Callable[[Trace, Limits, list[Calibration]], tuple[RankResult, Columns]]


class Stale(Exception):  # noqa: N818
    """The run changed while it was analysed: the work must be done again on what it is now."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a run is analysed from, read in one transaction."""

    run_id: str
    project_id: str
    version: int
    traces: list[Trace]
    pushed: list[Document]
    calibrations: list[Calibration]
    units_per_step: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Work(Inputs):
    """What a job needs: the run, and the trace that is to join it."""

    job_id: str
    blob_id: str
    trace: Trace


@dataclass(frozen=True)
class Analysed:
    """A trace that was read: ``kept`` is what its profile keeps of the result."""

    result: RankResult
    launches: Columns
    kept: bytes


def analyzed(trace: Trace, limits: Limits, calibrations: list[Calibration]) -> tuple[RankResult, Columns]:
    """A trace, read and analysed."""
    from rooflight.results.rank import analyse_rank, launches
    from rooflight.results.stages import Options, Stages

    timeline = read(trace, limits)
    usable = fitting(calibrations, timeline.meta.host)
    stages = Stages(timeline, Options(calibrations=tuple(usable)))
    return analyse_rank(stages), launches(stages)


async def perform(
    job_id: str, worker: str, settings: Settings, database: Database, analyzer: Analyzer
) -> str:
    """Do the job and store its result; the state it ends in.  Raises what is not the input's fault."""
    blobs, events = BlobStore(settings.data), EventStore(settings.data)
    work = await _gather(job_id, database, blobs)
    try:
        await queue.set_stage(database, job_id, worker, "analysing")
        changed = _completed(work, settings) if is_execution(work.trace) else None
        new = analyse(changed or work.trace, work, settings, analyzer)
        others = [t for t in work.traces if changed is None or t.profile_id != changed.profile_id]
        earlier, again = _earlier(others, work, settings, analyzer)
        document = document_of(work, [*earlier, new.result])
        await queue.set_stage(database, job_id, worker, "storing")
        await _store(work, worker, document, new, changed, again, database, events)
    except (RooflightError, Conflict) as error:
        await _refuse(work, worker, error, database, blobs)
        return REFUSED
    return DONE


async def _gather(job_id: str, database: Database, blobs: BlobStore) -> Work:
    async with database.read() as session:
        job = await session.get_one(Job, job_id)
        run = await session.get_one(Run, job.run_id)
        profiles = await profiles_of(session, run.id)
        return Work(
            job_id=job.id,
            run_id=run.id,
            project_id=run.project_id,
            version=run.version,
            units_per_step=run.units_per_step or {},
            blob_id=job.blob_id,
            trace=Trace(blobs.path(job.blob_id), job.source, blobs.timeline(job.blob_id)),
            traces=traces_of(profiles, blobs),
            pushed=[unpack(p.document) for p in profiles if p.document],
            calibrations=await calibrations_of(session, run.project_id),
        )


async def profiles_of(session: AsyncSession, run_id: str) -> list[Profile]:
    """What the run was given, in the order in which it was accepted."""
    query = select(Profile).where(Profile.run_id == run_id).order_by(Profile.created_at)
    return list(await session.scalars(query))


def traces_of(profiles: list[Profile], blobs: BlobStore) -> list[Trace]:
    """The raw traces among them, each as the execution trace of its process completes it."""
    beside = {rank: p for p in profiles if p.kind == EXECUTION for rank in p.ranks}
    found = [
        (p, p.blob_id, beside.get(next(iter(p.ranks), -1)))
        for p in profiles
        if p.blob_id and p.kind != EXECUTION
    ]
    return [
        Trace(
            path=blobs.path(blob),
            source=p.source if more is None else with_beside(p.source, more.source),
            stored=blobs.timeline((more and more.blob_id) or blob),
            profile_id=p.id,
            kept=p.result,
            completed=more is not None,
        )
        for p, blob, more in found
    ]


async def calibrations_of(session: AsyncSession, project_id: str) -> list[Calibration]:
    """The newest of each device, and of each host's CPU."""
    mine = or_(CalibrationRow.project_id.is_(None), CalibrationRow.project_id == project_id)
    rows = await session.scalars(
        select(CalibrationRow).where(mine).order_by(CalibrationRow.measured_at.desc())
    )
    newest: dict[tuple[str, str | None], CalibrationRow] = {}
    for row in rows:
        newest.setdefault((row.device_key, row.host if row.kind == "cpu" else None), row)
    return [msgspec.convert(r.body, Calibration) for r in newest.values()]


def analyse(trace: Trace, inputs: Inputs, settings: Settings, analyzer: Analyzer) -> Analysed:
    """Read a trace; a refusal names the file as it was sent."""
    try:
        result, launches = analyzer(trace, _limits(settings), inputs.calibrations)
    except Refused as refused:
        raise _with_name(refused, trace) from refused
    rank = msgspec.convert(storable(msgspec.to_builtins(result.rank)), Rank)
    result = replace(result, rank=rank, source=trace.source)
    return Analysed(result, launches, keep(result, inputs.calibrations))


def document_of(inputs: Inputs, results: list[RankResult]) -> Document:
    """The analysis of all that the run was given, of whose traces ``results`` is left."""
    document = combine(results)
    ranks, document.ranks = document.ranks, []
    document.source = ", ".join(r.source for r in results)[:2_000]
    document.units_per_step = inputs.units_per_step
    # The texts of the ranks have been cleaned one by one.
    document = msgspec.convert(storable(msgspec.to_builtins(document)), Document)
    document.ranks = ranks
    return merge([document, *inputs.pushed])


def _completed(work: Work, settings: Settings) -> Trace:
    """The trace of the run that the job's execution trace belongs to, completed by it."""
    try:
        return completed(work.traces, work.trace, _limits(settings))
    except Refused as refused:
        named = refused
        for trace in [work.trace, *work.traces]:
            named = _with_name(named, trace)
        raise named from refused


def _limits(settings: Settings) -> Limits:
    return Limits(max_bytes=settings.unpacked_bytes, max_ratio=settings.ratio)


def _earlier(
    traces: list[Trace], work: Work, settings: Settings, analyzer: Analyzer
) -> tuple[list[RankResult], dict[str, Analysed]]:
    """The other traces of the run, of which none is read that need not be; those that were, by profile."""
    results, again = [], {}
    for trace in traces:
        result = kept(trace.kept, work.calibrations)
        if result is None:
            one = again[trace.profile_id] = analyse(trace, work, settings, analyzer)
            result = one.result
        results.append(result)
    return results, again


def _with_name(refused: Refused, trace: Trace) -> Refused:
    """The refusal in terms of the file that was sent; where the store keeps it is nobody's business."""

    def named(text: str) -> str:
        for path in (trace.path, trace.stored):
            text = text.replace(str(path), trace.source).replace(path.name, trace.source)
        return text

    return type(refused)(named(refused.title), where=named(refused.where), hint=named(refused.hint))


async def _store(
    work: Work,
    worker: str,
    document: Document,
    new: Analysed,
    changed: Trace | None,
    again: Mapping[str, Analysed],
    database: Database,
    events: EventStore,
) -> None:
    """The new profile and the analysis of all; an execution trace renews the result of the one it changed."""
    rank = new.result.rank.rank
    written = events.write(work.project_id, _today(), new_id(), {rank: new.launches})
    profile = Profile(run_id=work.run_id, source=work.trace.source, ranks=[rank], blob_id=work.blob_id)
    profile.kind = TRACE if changed is None else EXECUTION
    old = None
    try:
        async with database.write() as session:
            run = await lock_run(session, work.run_id)
            job = await queue.own(session, work.job_id, worker)
            if run.version != work.version:
                raise Stale(work.run_id)
            session.add(profile)
            holder = profile if changed is None else await session.get_one(Profile, changed.profile_id)
            old, holder.events, holder.result = holder.events, written, new.kept
            for earlier, one in again.items():
                await session.execute(update(Profile).where(Profile.id == earlier).values(result=one.kept))
            fresh = {rank, *(one.result.rank.rank for one in again.values())}
            await store(session, run, document, fresh)
            queue.done(job)
    except BaseException:
        if written is not None:
            events.delete(written)
        raise
    if old is not None:
        events.delete(old)


async def _refuse(work: Work, worker: str, error: Exception, database: Database, blobs: BlobStore) -> None:
    problem = problem_of(error)
    async with database.write() as session:
        job = await queue.own(session, work.job_id, worker)
        if await queue.refuse(session, job, problem):
            blobs.delete(work.blob_id)


def _today() -> date:
    return utcnow().date()
