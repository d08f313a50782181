"""Captures over HTTP: ordered by anybody, fetched by the agent of the host, which answers."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from app.captures import queries
from app.captures.schemas import CaptureIn, CaptureOut, CapturePage, OutcomeIn
from app.db import Database
from app.deps import Caller, Db, IdempotencyKeyHeader, Reading
from app.errors import problems
from app.idempotency import Outcome, digest_of, once
from app.models import utcnow
from app.principal import Principal
from app.projects.queries import find_project

#: Proxies end an idle answer after 30 s or a minute: an agent asks again before.
LONGEST_WAIT_S = 25
_LOOK_S = 0.5
_AT_ONCE = 16

router = APIRouter(prefix="/captures", tags=["captures"])


@router.post(
    "",
    status_code=201,
    response_model=CaptureOut,
    responses={200: {"model": CaptureOut, "description": "Ordered before"}, **problems(404, 409)},
)
async def order_capture(
    request: Request, body: CaptureIn, database: Db, caller: Caller, key: IdempotencyKeyHeader = None
) -> JSONResponse:
    """Order a recording of processes that run on a host; its agent fetches the order within seconds."""

    async def act() -> Outcome:
        project = await find_project(session, body.project, caller)
        row = queries.add(project, body)
        session.add(row)
        await session.flush()
        return Outcome(201, queries.out(row, project.name, utcnow()).model_dump(mode="json"))

    async with database.write() as session:
        outcome = await once(session, request.url.path, key, digest_of(body.model_dump_json().encode()), act)
    return outcome.response(Location=f"/api/v1/captures/{outcome.answer['id']}")


@router.get("")
async def list_captures(
    database: Db,
    caller: Caller,
    host: Annotated[str | None, Query(max_length=200)] = None,
    wait: Annotated[
        int | None,
        Query(
            ge=0,
            le=LONGEST_WAIT_S,
            description="An agent asks: the orders of its host that wait, "
            "the answer held back for up to so many seconds until there is one.",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> CapturePage:
    """Captures, newest first; with `host` and `wait` the orders that wait for that host's agent."""
    if host is not None and wait is not None:
        return CapturePage(items=await _until_ordered(database, caller, host, wait))
    async with database.read() as session:
        found = await queries.newest(session, caller, host, limit)
    return CapturePage(items=[queries.out(*pair, utcnow()) for pair in found])


@router.get("/{capture_id}", responses=problems(404))
async def get_capture(capture_id: str, session: Reading, caller: Caller) -> CaptureOut:
    """One capture: its state, its processes, and the run that it became."""
    return queries.out(*await queries.require(session, capture_id, caller), utcnow())


@router.put("/{capture_id}/outcome", responses=problems(404, 409))
async def answer_capture(capture_id: str, body: OutcomeIn, database: Db, caller: Caller) -> CaptureOut:
    """The agent's word on a capture: taken, analysing, done with its run, or failed with the reason.
    The same word again changes nothing."""
    async with database.write() as session:
        row, project = await queries.require(session, capture_id, caller)
        queries.settle(row, body)
        return queries.out(row, project, utcnow())


async def _until_ordered(database: Database, caller: Principal, host: str, wait_s: int) -> list[CaptureOut]:
    """No transaction is held while nothing is there."""
    end = time.monotonic() + wait_s
    while True:
        async with database.read() as session:
            found = await queries.queued(session, caller, host, _AT_ONCE)
        if found or time.monotonic() >= end:
            return [queries.out(*pair, utcnow()) for pair in found]
        await asyncio.sleep(_LOOK_S)
