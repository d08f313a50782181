"""Runs in the database.  ``project_id`` is the project a token is limited to; others do not exist for it."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime

from sqlalchemy import Select, and_, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import WriteSession
from app.documents import unpack
from app.models import Project, Run, RunDocument
from app.problems import NotFound, Problem
from app.runs.schemas import RunIn, RunPage, RunSummary
from app.text import clean
from rooflight import protocol
from rooflight.errors import Refused

MAX_PAGE = 200


async def recent_runs(
    session: AsyncSession,
    *,
    cursor: str | None = None,
    limit: int = 50,
    search: str | None = None,
    project: str | None = None,
    pending: bool = False,
    project_id: str | None = None,
) -> RunPage:
    """Runs, newest first; ``search`` is looked for in name, project, file, host and device.

    A run that never had an accepted profile is not listed; ``pending`` adds those under analysis.
    """
    limit = max(1, min(limit, MAX_PAGE))
    query = _visible(project_id)
    query = query.where(or_(Run.listed, Run.state == "analyzing") if pending else Run.listed)
    if project:
        query = query.where(or_(Project.id == clean(project), Project.name == clean(project)))
    if search:
        query = query.where(Run.search_text.contains(clean(search).casefold(), autoescape=True))
    if cursor:
        at, run_id = _read_cursor(cursor)
        query = query.where(or_(Run.created_at < at, and_(Run.created_at == at, Run.id < run_id)))
    query = query.order_by(Run.created_at.desc(), Run.id.desc()).limit(limit + 1)
    rows = [(run, name) for run, name in await session.execute(query)]
    more = len(rows) > limit
    return RunPage(
        items=[_summary(run, name) for run, name in rows[:limit]],
        next_cursor=_cursor(rows[limit - 1][0]) if more else None,
    )


async def find_run(session: AsyncSession, run_id: str, *, project_id: str | None = None) -> RunSummary | None:
    """The run with that id, listed or not."""
    row = (await session.execute(_visible(project_id).where(Run.id == clean(run_id)))).first()
    return _summary(row[0], row[1]) if row else None


async def run_document(
    session: AsyncSession, run_id: str, *, project_id: str | None = None
) -> protocol.Document | None:
    """The merged analysis of a run, or ``None`` while it has none."""
    query = select(RunDocument.body).join(Run, Run.id == RunDocument.run_id).where(Run.id == clean(run_id))
    if project_id is not None:
        query = query.where(Run.project_id == project_id)
    body = await session.scalar(query)
    return unpack(body) if body is not None else None


async def require_run(session: AsyncSession, run_id: str, project_id: str | None) -> RunSummary:
    """As :func:`find_run`; :class:`NotFound` when there is none."""
    run = await find_run(session, run_id, project_id=project_id)
    if run is None:
        raise no_such_run(run_id)
    return run


async def lock_run(session: WriteSession, run_id: str, project_id: str | None = None) -> Run:
    """The run's row, locked until the transaction ends."""
    query = select(Run).where(Run.id == clean(run_id)).with_for_update()
    if project_id is not None:
        query = query.where(Run.project_id == project_id)
    run = await session.scalar(query)
    if run is None:
        raise no_such_run(run_id)
    return run


async def create_run(session: WriteSession, project: Project, given: RunIn) -> RunSummary:
    """The next run of a project."""
    counted = update(Project).where(Project.id == project.id).values(last_number=Project.last_number + 1)
    number = (await session.scalars(counted.returning(Project.last_number))).one()
    name = given.name or f"run {number}"
    run = Run(project_id=project.id, number=number, name=name, host=given.host)
    run.units_per_step = given.units_per_step
    run.search_text = search_text(run, project.name)
    session.add(run)
    await session.flush()
    return _summary(run, project.name)


def search_text(run: Run, project: str) -> str:
    """What a search looks through."""
    return "\n".join(t for t in (run.name, project, run.source, run.host, run.device_name) if t).casefold()


def no_such_run(run_id: str) -> NotFound:
    """The answer for a run that is not there, or not for this caller."""
    return NotFound("there is no such run", where=f"run {clean(run_id)}", hint="GET /api/v1/runs lists them")


def _visible(project_id: str | None) -> Select[Run, str]:
    query = select(Run, Project.name).join(Project, Project.id == Run.project_id)
    return query if project_id is None else query.where(Run.project_id == project_id)


def _summary(run: Run, project: str) -> RunSummary:
    return RunSummary(
        id=run.id,
        project=project,
        name=run.name,
        number=run.number,
        created_at=run.created_at,
        state=run.state,
        source=run.source,
        host=run.host,
        device_name=run.device_name,
        n_steps=run.n_steps,
        step_time_p50_us=run.step_time_p50_us,
        regime=run.regime,
        regime_confidence=run.regime_confidence,
        grade=run.grade,
        parts_us=run.parts_us,
        job_id=run.job_id,
        problem=Problem(**run.problem) if run.problem else None,
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _cursor(run: Run) -> str:
    since = run.created_at - _EPOCH
    micros = since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
    return base64.urlsafe_b64encode(f"{micros}|{run.id}".encode()).decode("ascii").rstrip("=")


def _read_cursor(text: str) -> tuple[datetime, str]:
    try:
        micros, _, run_id = (
            base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8").partition("|")
        )
        at = datetime.fromtimestamp(int(micros) // 1_000_000, UTC).replace(
            microsecond=int(micros) % 1_000_000
        )
    except (ValueError, OverflowError, OSError, binascii.Error) as e:
        raise Refused(
            "this is no cursor of ours", where="query.cursor", hint="take next_cursor as it was sent"
        ) from e
    return at, clean(run_id)
