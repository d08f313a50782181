"""Measured ceilings over HTTP.  The newest of a device is what its runs are judged by."""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import Select, or_, select

from app.calibrations.schemas import BehindOut, CalibrationIn, CalibrationOut, CalibrationPage, Siblings
from app.deps import Caller, Db, IdempotencyKeyHeader, Reading
from app.errors import problems
from app.idempotency import Outcome, digest_of, once
from app.models import CalibrationRow, utcnow
from app.models.base import new_id
from app.principal import Principal
from app.text import clean
from app.times import parse
from rooflight.calibration import Calibration
from rooflight.hardware.siblings import Identity, behind, identity

#: Calibrations that one comparison reads, the newest.
MOST_COMPARED = 2_000

router = APIRouter(prefix="/calibrations", tags=["calibrations"])


@router.post(
    "",
    status_code=201,
    response_model=CalibrationOut,
    responses={200: {"model": CalibrationOut, "description": "Sent before"}, **problems(409)},
)
async def add_calibration(
    request: Request, body: CalibrationIn, database: Db, caller: Caller, key: IdempotencyKeyHeader = None
) -> JSONResponse:
    """Store the measured ceilings of a device."""

    async def act() -> Outcome:
        row = CalibrationRow(
            id=new_id(),
            project_id=caller.project_id,
            device_key=_key(body.device),
            device=body.device,
            kind=body.kind,
            host=body.host,
            uuid=body.uuid,
            measured_at=parse(body.measured_at),
            created_at=utcnow(),
            body=body.model_dump(mode="json"),
        )
        session.add(row)
        await session.flush()
        return Outcome(201, _out(row).model_dump(mode="json"))

    async with database.write() as session:
        outcome = await once(session, request.url.path, key, digest_of(body.model_dump_json().encode()), act)
    return outcome.response()


@router.get("")
async def list_calibrations(
    session: Reading,
    caller: Caller,
    device: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> CalibrationPage:
    """Calibrations, newest measurement first; of one device when it is named."""
    query = _visible(caller).limit(limit)
    if device is not None:
        query = query.where(CalibrationRow.device_key == _key(clean(device)))
    return CalibrationPage(items=[_out(row) for row in await session.scalars(query)])


@router.get("/siblings")
async def compare_siblings(
    session: Reading, caller: Caller, device: Annotated[str, Query(max_length=200)]
) -> Siblings:
    """The devices of one model beside each other, each by its newest calibration."""
    query = _visible(caller).where(CalibrationRow.device_key == _key(clean(device))).limit(MOST_COMPARED)
    newest: dict[Identity, CalibrationRow] = {}
    for row in await session.scalars(query):
        newest.setdefault(identity(_measured(row)), row)
    slow = behind(_measured(row) for row in newest.values())
    return Siblings(
        items=[_out(row) for row in newest.values()],
        behind=[BehindOut(**msgspec.to_builtins(b)) for b in slow],
    )


def _visible(caller: Principal) -> Select[CalibrationRow]:
    """Calibrations that concern the caller, newest measurement first."""
    query = select(CalibrationRow).order_by(CalibrationRow.measured_at.desc(), CalibrationRow.id)
    if caller.project_id is None:
        return query
    mine = or_(CalibrationRow.project_id.is_(None), CalibrationRow.project_id == caller.project_id)
    return query.where(mine)


def _measured(row: CalibrationRow) -> Calibration:
    return msgspec.convert(row.body, Calibration)


def _key(device: str) -> str:
    """One device name in different spelling of case and space is one device."""
    return hashlib.sha256(" ".join(device.casefold().split()).encode()).hexdigest()


def _out(row: CalibrationRow) -> CalibrationOut:
    return CalibrationOut(id=row.id, created_at=row.created_at, **row.body)
