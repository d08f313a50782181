"""Captures in the database; a project's token sees those of its project."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.captures.schemas import CaptureIn, CaptureOut, OutcomeIn, ProcessOut
from app.models import CaptureRow, Project, utcnow
from app.principal import Principal
from app.problems import Conflict, NotFound
from app.text import clean

#: An order that no agent fetched by then is of no use: what was to be seen has passed.
WAITS = timedelta(minutes=10)
#: An agent that took an order and was not heard of since has died with it.
ANSWERS = timedelta(hours=2)
FINAL = ("done", "failed")

Found = tuple[CaptureRow, str]


def add(project: Project, body: CaptureIn) -> CaptureRow:
    """A new order; no agent has it yet."""
    order = body.model_dump(mode="json")
    return CaptureRow(project_id=project.id, host=body.host, state="queued", order=order)


async def newest(session: AsyncSession, caller: Principal, host: str | None, limit: int) -> list[Found]:
    """The captures that the caller may see, newest first."""
    query = _visible(caller).order_by(CaptureRow.created_at.desc(), CaptureRow.id).limit(limit)
    if host is not None:
        query = query.where(CaptureRow.host == clean(host))
    return [(row, project) for row, project in await session.execute(query)]


async def queued(session: AsyncSession, caller: Principal, host: str, limit: int) -> list[Found]:
    """The orders that wait for the agent of a host, oldest first; not those that waited too long."""
    query = (
        _visible(caller)
        .where(CaptureRow.host == clean(host), CaptureRow.state == "queued")
        .where(CaptureRow.created_at > utcnow() - WAITS)
        .order_by(CaptureRow.created_at, CaptureRow.id)
        .limit(limit)
    )
    return [(row, project) for row, project in await session.execute(query)]


async def require(session: AsyncSession, capture_id: str, caller: Principal) -> Found:
    """One capture; :class:`NotFound` when there is none for this caller."""
    found = (await session.execute(_visible(caller).where(CaptureRow.id == clean(capture_id)))).first()
    if found is None:
        raise NotFound("there is no such capture", where=f"capture {capture_id}")
    return found[0], found[1]


def settle(row: CaptureRow, outcome: OutcomeIn) -> None:
    """Take an agent's word; what is over stays as it is, and the same word again changes nothing."""
    said = outcome.model_dump(mode="json")
    if row.state in FINAL and (row.outcome or {}) | {"state": row.state} != said:
        raise Conflict("the capture is over", where=f"capture {row.id}", hint=f"it is {row.state}")
    row.state, row.outcome, row.updated_at = outcome.state, said, utcnow()


def out(row: CaptureRow, project: str, now: datetime) -> CaptureOut:
    """On the wire; one that nobody will answer any more has failed."""
    told = row.outcome or {}
    state, problem = row.state, told.get("problem")
    if state == "queued" and now - row.created_at > WAITS:
        state, problem = "failed", f"no agent of host {row.host} has asked for orders: is it running there?"
    elif state not in ("queued", *FINAL) and now - row.updated_at > ANSWERS:
        state, problem = "failed", f"the agent of host {row.host} took the order and was not heard of since"
    return CaptureOut(
        id=row.id,
        project=project,
        host=row.host,
        state=state,
        problem=problem,
        processes=[ProcessOut(**p) for p in told.get("processes", [])],
        run_id=told.get("run_id"),
        order=CaptureIn(**row.order),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _visible(caller: Principal) -> Select[tuple[CaptureRow, str]]:
    query = select(CaptureRow, Project.name).join(Project, Project.id == CaptureRow.project_id)
    return query if caller.project_id is None else query.where(CaptureRow.project_id == caller.project_id)
