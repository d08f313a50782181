"""The work of one job: traces in, one analysis out.  Runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import or_, select

from app.blobs import BlobStore
from app.db import Database
from app.documents import unpack
from app.events.parquet import EventStore
from app.ingest.merge import merge
from app.ingest.persist import store
from app.ingest.storable import storable
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

#: Traces (file and the name to show for it), limits, calibrations → document and launches per rank.
Analyzer = Callable[[list[tuple[Path, str]], Limits, list[Calibration]], tuple[Document, dict[int, Any]]]


class Stale(Exception):  # noqa: N818
    """The run changed while it was analysed: the work must be done again on what it is now."""


@dataclass(frozen=True)
class Work:
    """What a job needs, read in one transaction."""

    job_id: str
    run_id: str
    project_id: str
    version: int
    blob_id: str
    source: str
    traces: list[tuple[Path, str]]
    known_ranks: frozenset[int]
    pushed: list[Document]
    calibrations: list[Calibration]


def analyzed(
    traces: list[tuple[Path, str]], limits: Limits, calibrations: list[Calibration]
) -> tuple[Document, Mapping[int, Any]]:
    """All traces of a run, read and analysed together."""
    from rooflight import readers
    from rooflight.analysis import Options, analyze

    timelines = [readers.read(path, limits=limits) for path, _ in traces]
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
        document, launches = _document(work, settings, analyzer)
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
        profiles = list(
            await session.scalars(
                select(Profile).where(Profile.run_id == run.id).order_by(Profile.created_at)
            )
        )
        mine = or_(CalibrationRow.project_id.is_(None), CalibrationRow.project_id == run.project_id)
        rows = await session.scalars(
            select(CalibrationRow).where(mine).order_by(CalibrationRow.measured_at.desc())
        )
        newest: dict[tuple[str, str | None], CalibrationRow] = {}
        for row in rows:
            newest.setdefault((row.device_key, row.host if row.kind == "cpu" else None), row)
    earlier = [(blobs.path(p.blob_id), p.source) for p in profiles if p.blob_id]
    return Work(
        job_id=job.id,
        run_id=run.id,
        project_id=run.project_id,
        version=run.version,
        blob_id=job.blob_id,
        source=job.source,
        traces=[*earlier, (blobs.path(job.blob_id), job.source)],
        known_ranks=frozenset(r for p in profiles for r in p.ranks),
        pushed=[unpack(p.document) for p in profiles if p.document],
        calibrations=[msgspec.convert(r.body, Calibration) for r in newest.values()],
    )


def _document(work: Work, settings: Settings, analyzer: Analyzer) -> tuple[Document, Mapping[int, Any]]:
    limits = Limits(max_bytes=settings.unpacked_bytes, max_ratio=settings.ratio)
    try:
        document, launches = analyzer(work.traces, limits, work.calibrations)
    except Refused as refused:
        raise _with_names(refused, work) from refused
    document.source = ", ".join(name for _, name in work.traces)[:2_000]
    kept = msgspec.convert(storable(msgspec.to_builtins(document)), Document)
    return merge([kept, *work.pushed]), launches


def _with_names(refused: Refused, work: Work) -> Refused:
    """The refusal in terms of the files that were sent; where the store keeps them is nobody's business."""

    def named(text: str) -> str:
        for path, source in work.traces:
            text = text.replace(str(path), source).replace(path.name, source)
        return text

    return type(refused)(named(refused.title), where=named(refused.where), hint=named(refused.hint))


async def _store(
    work: Work,
    worker: str,
    document: Document,
    launches: dict[int, Any],
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
