"""Runs over HTTP: the list, one run, its analysis, its regimes, ranks and roofline."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from app.deps import Caller, Db, IdempotencyKeyHeader, Reading
from app.errors import problems
from app.idempotency import Outcome, digest_of, once
from app.problems import NotFound
from app.projects.queries import find_project
from app.runs import queries
from app.runs.regimes import regimes
from app.runs.schemas import Regimes, RunIn, RunPage, RunSummary
from rooflight import protocol
from rooflight.http_form import encode_http

router = APIRouter(tags=["runs"])
_JSON = "application/json"


def _answers(schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "OK", "content": {_JSON: {"schema": schema}}}, **problems(404)}


@router.post(
    "/projects/{project:path}/runs",
    status_code=201,
    response_model=RunSummary,
    responses={200: {"model": RunSummary, "description": "Sent before"}, **problems(404, 409)},
)
async def create_run(
    request: Request,
    project: str,
    body: RunIn,
    database: Db,
    caller: Caller,
    key: IdempotencyKeyHeader = None,
) -> JSONResponse:
    """Make a run in a project (its id or its name)."""

    async def act() -> Outcome:
        found = await find_project(session, project, caller)
        run = await queries.create_run(session, found, body)
        return Outcome(201, run.model_dump(mode="json"))

    async with database.write() as session:
        outcome = await once(session, request.url.path, key, digest_of(body.model_dump_json().encode()), act)
    return outcome.response(Location=f"/api/v1/runs/{outcome.answer['id']}")


@router.get("/runs", responses=problems(422))
async def list_runs(
    session: Reading,
    caller: Caller,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=queries.MAX_PAGE)] = 50,
    search: Annotated[str | None, Query(max_length=200)] = None,
    project: Annotated[str | None, Query(max_length=200, description="Id or name.")] = None,
    pending: Annotated[bool, Query(description="Also those whose first analysis is under way.")] = False,
) -> RunPage:
    """Runs with at least one accepted profile, newest first."""
    return await queries.recent_runs(
        session,
        cursor=cursor,
        limit=limit,
        search=search,
        project=project,
        pending=pending,
        project_id=caller.project_id,
    )


@router.get("/runs/{run_id}", responses=problems(404))
async def get_run(run_id: str, session: Reading, caller: Caller) -> RunSummary:
    """One run, listed or not."""
    return await queries.require_run(session, run_id, caller.project_id)


@router.get("/runs/{run_id}/analysis", responses=_answers({"$ref": "#/components/schemas/Document"}))
async def get_analysis(run_id: str, session: Reading, caller: Caller) -> Response:
    """The JSON of `rooflight analyze` for this run, with big integers as decimal strings."""
    document = await document_of(session, run_id, caller)
    return Response(await asyncio.to_thread(encode_http, document), media_type=_JSON)


@router.get("/runs/{run_id}/regimes", responses=problems(404))
async def get_regimes(run_id: str, session: Reading, caller: Caller) -> Regimes:
    """Kernel time and steps by regime, per rank."""
    return regimes(await document_of(session, run_id, caller))


@router.get(
    "/runs/{run_id}/ranks",
    responses=_answers(
        {
            "type": "object",
            "properties": {"items": {"type": "array", "items": {"type": "object"}}},
            "required": ["items"],
        }
    ),
)
async def get_ranks(run_id: str, session: Reading, caller: Caller) -> Response:
    """The ranks of the run: grade, flags, device figures, roofs and verdict; no rows."""
    document = await document_of(session, run_id, caller)
    rows = {"steps", "inferred_steps", "kernels", "attribution", "attribution_op_time_us", "findings", "idle"}
    items = [{k: v for k, v in msgspec.to_builtins(r).items() if k not in rows} for r in document.ranks]
    for item in items:
        if item["cpu"] is not None:
            item["cpu"] = {k: v for k, v in item["cpu"].items() if k not in ("steps", "ops")}
    answer = {
        "items": items,
        "missing_ranks": document.missing_ranks,
        "world_size": document.world_size,
        "collectives": len(document.collectives),
        "clock_offset_us": document.clock_offset_us,
    }
    return Response(encode_http(answer), media_type=_JSON)


@router.get("/runs/{run_id}/roofline", responses=_answers({"type": "object", "title": "A plotly figure"}))
async def get_roofline(
    run_id: str,
    session: Reading,
    caller: Caller,
    rank: Annotated[
        int | None, Query(ge=0, le=2**31, description="Default: the lowest that is there.")
    ] = None,
    level: Annotated[
        Literal["kernel", "op", "module", "step", "run"], Query(description="What a point speaks for.")
    ] = "kernel",
    dtype: Annotated[
        str | None, Query(max_length=16, description="Only the work in this number type, as `bf16`.")
    ] = None,
    memory: Annotated[
        Literal["dram", "l2", "l1"], Query(description="What a byte is counted at; caches need counters.")
    ] = "dram",
) -> Response:
    """The roofline of one rank as a plotly figure, with a point for each of what the level says."""
    from rooflight.figures.roofline import roofline

    document = await document_of(session, run_id, caller)
    present = [r.rank for r in document.ranks]
    if rank is None:
        rank = min(present)
    if rank not in present:
        raise NotFound("this run has no such rank", where=f"rank {rank}", hint="GET …/ranks lists them")
    figure = protocol.encode(roofline(document, rank=rank, level=level, dtype=dtype, memory=memory))
    return Response(figure, media_type=_JSON)


async def document_of(session: Reading, run_id: str, caller: Caller) -> protocol.Document:
    """The analysis of a run; 404 for one that the caller may not see or that has none yet."""
    run = await queries.require_run(session, run_id, caller.project_id)
    document = await queries.run_document(session, run.id)
    if document is None:
        raise NotFound(
            "this run has no analysis yet",
            where=f"run {run.id}, state {run.state}",
            hint="ask its job, or send a trace",
        )
    return document
