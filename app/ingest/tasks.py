"""The work of one job: traces in, one analysis out.  Runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.blobs import BlobStore
from app.db import Database
from app.documents import unpack
from app.events.parquet import EventStore
from app.ingest.merge import merge
from app.ingest.persist import store
from app.ingest.storable import storable
from app.ingest.traces import Trace, read
from app.jobs import queue
from app.models import CalibrationRow, Job, Profile, Run, utcnow
from app.models.base import new_id
from app.models.jobs import DONE, REFUSED
from app.problems import Conflict, problem_of
from app.runs.queries import lock_run
from app.settings import Settings
from rooflight.errors import Refused, RooflightError
from rooflight.protocol import Calibration, Document
from rooflight.readers.source import Limits

#: Traces, limits, calibrations → document and launches per rank.
Analyzer = Callable[[list[Trace], Limits, list[Calibration]], tuple[Document, Mapping[int, Any]]]


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


@dataclass(frozen=True, kw_only=True)
class Work(Inputs):
    """What a job needs: the run with the job's own trace as its last."""

    job_id: str
    blob_id: str
    source: str
    known_ranks: frozenset[int]


def analyzed(
    traces: list[Trace], limits: Limits, calibrations: list[Calibration]
) -> tuple[Document, Mapping[int, Any]]:
    """All traces of a run, read and analysed together."""
    from rooflight.analysis import Options, analyze

    timelines = [read(trace, limits) for trace in traces]
    usable = fitting(calibrations, {timeline.meta.host for timeline in timelines})
    analysis = analyze(timelines, options=Options(calibrations=tuple(usable)))
    return analysis.document, analysis.launches


def fitting(calibrations: list[Calibration], hosts: set[str | None]) -> list[Calibration]:
    """Those that may judge traces of ``hosts``: of a CPU only what was measured on the traces' one host.

    No trace names its CPU, so that its host is all that ties it to a calibration.
    """
    only = next(iter(hosts)) if len(hosts) == 1 else None
    return [c for c in calibrations if c.kind != "cpu" or (only is not None and c.host == only)]


async def perform(
    job_id: str, worker: str, settings: Settings, database: Database, analyzer: Analyzer
) -> str:
    """Do the job and store its result; the state it ends in.  Raises what is not the input's fault."""
    blobs, events = BlobStore(settings.data), EventStore(settings.data)
    work = await _gather(job_id, database, blobs)
    try:
        await queue.set_stage(database, job_id, worker, "analysing")
        document, launches = document_of(work, settings, analyzer)
        await queue.set_stage(database, job_id, worker, "storing")
        await _store(work, worker, document, launches, database, events)
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
            blob_id=job.blob_id,
            source=job.source,
            traces=[*traces_of(profiles, blobs), trace_of(job.blob_id, job.source, blobs)],
            known_ranks=frozenset(r for p in profiles for r in p.ranks),
            pushed=[unpack(p.document) for p in profiles if p.document],
            calibrations=await calibrations_of(session, run.project_id),
        )


async def profiles_of(session: AsyncSession, run_id: str) -> list[Profile]:
    """What the run was given, in the order in which it was accepted."""
    query = select(Profile).where(Profile.run_id == run_id).order_by(Profile.created_at)
    return list(await session.scalars(query))


def traces_of(profiles: list[Profile], blobs: BlobStore) -> list[Trace]:
    """The raw traces among them."""
    return [trace_of(p.blob_id, p.source, blobs) for p in profiles if p.blob_id]


def trace_of(blob_id: str, source: str, blobs: BlobStore) -> Trace:
    """A raw trace in the store."""
    return Trace(blobs.path(blob_id), source, blobs.timeline(blob_id))


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


def document_of(work: Inputs, settings: Settings, analyzer: Analyzer) -> tuple[Document, Mapping[int, Any]]:
    """The analysis of all that the run was given; a refusal names the files as they were sent."""
    limits = Limits(max_bytes=settings.unpacked_bytes, max_ratio=settings.ratio)
    try:
        document, launches = analyzer(work.traces, limits, work.calibrations)
    except Refused as refused:
        raise _with_names(refused, work) from refused
    document.source = ", ".join(t.source for t in work.traces)[:2_000]
    kept = msgspec.convert(storable(msgspec.to_builtins(document)), Document)
    return merge([kept, *work.pushed]), launches


def _with_names(refused: Refused, work: Inputs) -> Refused:
    """The refusal in terms of the files that were sent; where the store keeps them is nobody's business."""

    def named(text: str) -> str:
        for t in work.traces:
            for path in (t.path, t.stored):
                text = text.replace(str(path), t.source).replace(path.name, t.source)
        return text

    return type(refused)(named(refused.title), where=named(refused.where), hint=named(refused.hint))


async def _store(
    work: Work,
    worker: str,
    document: Document,
    launches: Mapping[int, Any],
    database: Database,
    events: EventStore,
) -> None:
    new = [r.rank for r in document.ranks if r.rank not in work.known_ranks]
    profile_id = new_id()
    written = events.write(
        work.project_id, _today(), profile_id, {rank: launches[rank] for rank in new if rank in launches}
    )
    try:
        async with database.write() as session:
            run = await lock_run(session, work.run_id)
            job = await queue.own(session, work.job_id, worker)
            if run.version != work.version:
                raise Stale(work.run_id)
            session.add(
                Profile(
                    id=profile_id,
                    run_id=run.id,
                    kind="trace",
                    source=work.source,
                    ranks=new,
                    blob_id=work.blob_id,
                    events=written,
                )
            )
            await store(session, run, document)
            queue.done(job)
    except BaseException:
        if written is not None:
            events.delete(written)
        raise


async def _refuse(work: Work, worker: str, error: Exception, database: Database, blobs: BlobStore) -> None:
    problem = problem_of(error)
    async with database.write() as session:
        job = await queue.own(session, work.job_id, worker)
        if await queue.refuse(session, job, problem):
            blobs.delete(work.blob_id)


def _today() -> date:
    return utcnow().date()
