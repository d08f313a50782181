"""What agents measure, over HTTP: pushed by them, listed by fleet, host and device."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from app.deps import Caller, Db, IdempotencyKeyHeader, Reading
from app.errors import problems
from app.idempotency import once
from app.models import utcnow
from app.telemetry import queries
from app.telemetry.push import instant_us, read_push
from app.telemetry.schemas import DevicePage, Fleet, HostPage, ReceivedOut, TelemetryPage
from app.telemetry.service import Arrival, store
from rooflight.client import SENT_AT

router = APIRouter(tags=["telemetry"])
_BODY = {
    "requestBody": {
        "required": True,
        "description": "{agent_time, host, windows: [{uuid, t_start, t_end, field: {min, mean, max, last}}]} "
        "or {samples: [{uuid, t, field}]}. Times are seconds since the epoch, or ISO 8601 with offset.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
Cursor = Annotated[str | None, Query(max_length=1_000)]
Limit = Annotated[int, Query(ge=1, le=200)]
Time = Annotated[str | None, Query(max_length=64, description="Seconds since the epoch, or with offset.")]


@router.post(
    "/telemetry",
    status_code=201,
    response_model=ReceivedOut,
    responses={
        200: {"model": ReceivedOut, "description": "Sent before"},
        **problems(400, 409, 413, 415, 422, 426),
    },
    openapi_extra=_BODY,
)
async def push_telemetry(
    request: Request, database: Db, caller: Caller, key: IdempotencyKeyHeader = None
) -> JSONResponse:
    """Store windows or samples of devices; what is there already is not added again."""
    at = utcnow()  # before the body: how long it takes to arrive is no difference of clocks
    body = await request.body()
    push = await asyncio.to_thread(read_push, body, request.headers.get(SENT_AT))
    arrival = Arrival(push, caller.project_id or "", at)
    async with database.write() as session:
        outcome = await once(session, request.url.path, key, push.digest, lambda: store(session, arrival))
    return outcome.response()


@router.get("/fleet")
async def get_fleet(session: Reading, caller: Caller) -> Fleet:
    """How many hosts and devices report, in which states, and what their agents dropped."""
    return await queries.fleet(session, caller.project_id)


@router.get("/hosts", responses=problems(422))
async def list_hosts(session: Reading, caller: Caller, cursor: Cursor = None, limit: Limit = 50) -> HostPage:
    """Hosts by name."""
    return await queries.hosts(session, caller.project_id, cursor, limit)


@router.get("/devices", responses=problems(422))
async def list_devices(
    session: Reading,
    caller: Caller,
    host: Annotated[str | None, Query(max_length=200, description="Id or name.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DevicePage:
    """Devices by UUID."""
    return await queries.devices(session, caller.project_id, host, cursor, limit)


@router.get("/devices/{device:path}/telemetry", responses=problems(404, 422))
async def get_telemetry(
    device: str,
    session: Reading,
    caller: Caller,
    since: Time = None,
    until: Time = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=2_000)] = 500,
) -> TelemetryPage:
    """What was measured of a device (its id or UUID) from `since` until before `until`, in order of time."""
    span = _time(since, "query.since"), _time(until, "query.until")
    return await queries.telemetry(session, caller.project_id, device, span, cursor, limit)


def _time(text: str | None, where: str) -> int | None:
    if text is None:
        return None
    try:
        return instant_us(float(text), where)
    except ValueError:
        return instant_us(text, where)
