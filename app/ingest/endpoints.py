"""Where profiles come in: raw traces and analyses."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import select

from app.blobs import BlobStore, Incoming
from app.db import Database, ReadSession, WriteSession, insert_new
from app.deps import Blobs, Caller, Db, Events, IdempotencyKeyHeader, ReadSettings
from app.documents import pack, unpack
from app.errors import problems
from app.events.parquet import EventStore
from app.idempotency import Outcome, digest_of, once
from app.ingest import push
from app.ingest.merge import merge
from app.ingest.persist import store
from app.ingest.schemas import Arrived, Pushed
from app.ingest.upload import check_media, receive, shown_name
from app.jobs.endpoints import job_out
from app.jobs.schemas import Accepted
from app.models import Blob, Job, Profile, Run, RunDocument, utcnow
from app.models.base import new_id
from app.models.profiles import PUSH
from app.partial import Part, Partial, Sha256, checked
from app.runs.queries import lock_run, require_run
from app.settings import Settings
from rooflight.errors import Refused, TooLarge
from rooflight.protocol import Document
from rooflight.readers.source import Limits

ShownName = Annotated[str | None, Query(max_length=4_096, description="The file's name, to be shown.")]
router = APIRouter(prefix="/runs/{run_id}", tags=["ingest"])
_ANY_BODY = {
    "requestBody": {
        "required": True,
        "description": "The trace as the profiler wrote it: JSON, or JSON in gzip.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"type": "object"}},
            "application/gzip": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_ANALYSIS_BODY = {
    "requestBody": {
        "required": True,
        "description": "The JSON of `rooflight analyze`, or only {kernels: [{name, time_us, …}]}.",
        "content": {
            "application/json": {
                "schema": {"anyOf": [{"$ref": "#/components/schemas/Document"}, {"type": "object"}]}
            }
        },
    }
}


@router.post(
    "/traces",
    status_code=202,
    response_model=Accepted,
    responses={
        200: {"model": Accepted, "description": "Sent before"},
        **problems(400, 404, 409, 413, 415, 507),
    },
    openapi_extra=_ANY_BODY,
)
async def send_trace(
    request: Request,
    run_id: str,
    database: Db,
    blobs: Blobs,
    settings: ReadSettings,
    caller: Caller,
    filename: ShownName = None,
    key: IdempotencyKeyHeader = None,
) -> JSONResponse:
    """Send a raw trace.  It is checked while it streams, stored, and analysed after the answer."""
    check_media(request.headers.get("content-type"))
    async with database.read() as reading:
        run = await require_run(reading, run_id, caller.project_id)
    source = shown_name(filename)
    limits = Limits(max_bytes=settings.unpacked_bytes, max_ratio=settings.ratio)
    with blobs.incoming() as upload:
        await receive(request.stream(), upload, limits)
        async with database.write() as session:

            async def act() -> Outcome:
                return await _accept(session, blobs, upload, run.id, source)

            digest = digest_of(upload.digest.encode(), source)
            outcome = await once(session, request.url.path, key, digest, act)
    request.app.state.runner.wake()
    return outcome.response(Location=f"/api/v1/jobs/{outcome.answer['job']['id']}")


@router.get("/traces/parts/{sha256}", responses=problems(404))
async def trace_parts(run_id: str, sha256: Sha256, database: Db, blobs: Blobs, caller: Caller) -> Arrived:
    """How much of a trace is here: where its sender goes on."""
    async with database.read() as reading:
        run = await require_run(reading, run_id, caller.project_id)
        job = await _job_of(reading, run.id, sha256)
    offset = await asyncio.to_thread(blobs.partial(run.id, sha256).offset)
    return Arrived(offset=offset, job=None if job is None else job_out(job))


@router.put(
    "/traces/parts/{sha256}",
    response_model=Arrived,
    responses={
        202: {"model": Arrived, "description": "The last part: accepted"},
        **problems(400, 404, 409, 413, 415, 507),
    },
    openapi_extra=_ANY_BODY,
)
async def send_part(
    request: Request,
    run_id: str,
    sha256: Sha256,
    database: Db,
    blobs: Blobs,
    settings: ReadSettings,
    caller: Caller,
    offset: Annotated[int, Query(ge=0, le=2**53, description="Where the part begins.")],
    size: Annotated[int, Query(ge=1, le=2**53, description="Bytes of the whole trace.")],
    filename: ShownName = None,
    digest: Annotated[
        str | None, Header(alias="Content-Digest", description="sha-256 of the part (RFC 9530).")
    ] = None,
) -> JSONResponse:
    """Send a part of a raw trace, named by the SHA-256 of the whole; the last one is answered with 202 and
    the job.  A part that is here already changes nothing."""
    check_media(request.headers.get("content-type"))
    if size > settings.upload_bytes:
        raise TooLarge(f"a trace has at most {settings.upload_bytes} bytes", where="size")
    async with database.read() as reading:
        run = await require_run(reading, run_id, caller.project_id)
        job = await _job_of(reading, run.id, sha256)
    if job is not None:
        return JSONResponse(Arrived(offset=size, job=job_out(job)).model_dump(mode="json"))
    part = Part(offset, size, checked(await request.body(), digest))
    partial = blobs.partial(run.id, sha256)
    here = await asyncio.to_thread(partial.add, part)
    if here < size:
        return JSONResponse(Arrived(offset=here).model_dump(mode="json"))
    return await _whole(request, partial, run.id, database, blobs, settings, shown_name(filename))


async def _whole(
    request: Request,
    partial: Partial,
    run_id: str,
    database: Database,
    blobs: BlobStore,
    settings: Settings,
    source: str,
) -> JSONResponse:
    """All parts are here: what they make is taken, or refused, like a trace that came at once."""
    limits = Limits(max_bytes=settings.unpacked_bytes, max_ratio=settings.ratio)
    try:
        await asyncio.to_thread(partial.check)
        with blobs.incoming() as upload:
            await receive(partial.stream(), upload, limits)
            async with database.write() as session:
                outcome = await _accept(session, blobs, upload, run_id, source)
    except Refused:
        # It will never be taken; after a full disk or a lost database what is here is used again.
        partial.remove()
        raise
    partial.remove()
    request.app.state.runner.wake()
    job = outcome.answer["job"]
    return JSONResponse({"offset": upload.size, "job": job}, 202, {"Location": f"/api/v1/jobs/{job['id']}"})


async def _job_of(session: ReadSession, run_id: str, sha256: str) -> Job | None:
    """The job of a trace that this run has been sent, whole."""
    query = select(Job).where(Job.run_id == run_id, Job.blob_id == sha256).order_by(Job.created_at.desc())
    found: Job | None = (await session.scalars(query.limit(1))).first()
    return found


@router.post(
    "/profiles",
    status_code=201,
    response_model=Pushed,
    responses={200: {"model": Pushed, "description": "Sent before"}, **problems(400, 404, 409, 413, 422)},
    openapi_extra=_ANALYSIS_BODY,
)
async def push_profile(
    request: Request,
    run_id: str,
    database: Db,
    events: Events,
    caller: Caller,
    key: IdempotencyKeyHeader = None,
) -> JSONResponse:
    """Push an analysis made elsewhere: one profile, with ranks that the run does not have yet."""
    body = await request.body()
    async with database.read() as reading:
        await require_run(reading, run_id, caller.project_id)
    document, launches = await asyncio.to_thread(push.parse, body)
    profile = Profile(id=new_id(), kind=PUSH, source=document.source, ranks=[r.rank for r in document.ranks])
    try:
        async with database.write() as session:

            async def act() -> Outcome:
                run = await lock_run(session, run_id, caller.project_id)
                return await _accept_profile(session, events, run, profile, document, launches)

            outcome = await once(session, request.url.path, key, digest_of(body), act)
    except BaseException:
        if profile.events is not None:
            events.delete(profile.events)
        raise
    return outcome.response(Location=f"/api/v1/runs/{run_id}")


async def _accept(
    session: WriteSession, blobs: BlobStore, upload: Incoming, run_id: str, source: str
) -> Outcome:
    """Blob and job, durable together once the transaction is."""
    run = await lock_run(session, run_id)
    await _lock_blob(session, upload)
    await asyncio.to_thread(blobs.keep, upload)
    job = Job(
        id=new_id(), run_id=run_id, blob_id=upload.digest, source=source, attempts=0, created_at=utcnow()
    )
    job.state = "queued"
    session.add(job)
    run.job_id, run.source = job.id, run.source or source
    if not run.listed:
        run.state, run.problem = "analyzing", None
    await session.flush()
    return Outcome(202, Accepted(job=job_out(job)).model_dump(mode="json"))


async def _lock_blob(session: WriteSession, upload: Incoming) -> None:
    """Hold the blob's row, so that no job that is being refused deletes the file meanwhile."""
    held = select(Blob.id).where(Blob.id == upload.digest).with_for_update()
    while not await insert_new(session, Blob, id=upload.digest, size=upload.size, created_at=utcnow()):
        if await session.scalar(held) is not None:
            return


async def _accept_profile(
    session: WriteSession,
    events: EventStore,
    run: Run,
    profile: Profile,
    document: Document,
    launches: push.Launches,
) -> Outcome:
    body = await session.scalar(select(RunDocument.body).where(RunDocument.run_id == run.id))
    merged = await asyncio.to_thread(merge, [document] if body is None else [unpack(body), document])
    profile.run_id = run.id
    profile.document = await asyncio.to_thread(pack, document)
    profile.events = await asyncio.to_thread(
        events.write, run.project_id, utcnow().date(), profile.id, launches
    )
    session.add(profile)
    await store(session, run, merged, {r.rank for r in document.ranks})
    await session.flush()
    answer = Pushed(id=profile.id, run_id=run.id, ranks=profile.ranks)
    return Outcome(201, answer.model_dump(mode="json"))
