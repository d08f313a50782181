"""Projects in the database; what a caller may not see does not exist for it."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.db import ReadSession, WriteSession, insert_new
from app.models import Project
from app.models.base import new_id, utcnow
from app.principal import Principal
from app.problems import Forbidden, NotFound
from app.text import clean


async def find_project(session: AsyncSession, ref: str, caller: Principal) -> Project:
    """The project with that id or name; :class:`NotFound` when there is none for this caller."""
    ref = clean(ref)
    query = select(Project).where(or_(Project.id == ref, Project.name == ref))
    if caller.project_id is not None:
        query = query.where(Project.id == caller.project_id)
    # An id beats a name that looks like one.
    rows = sorted(await session.scalars(query), key=lambda p: p.id != ref)
    if not rows:
        raise NotFound(
            "there is no such project", where=f"project {ref}", hint="make it by POST /api/v1/projects"
        )
    return rows[0]


async def all_projects(session: ReadSession, caller: Principal) -> list[Project]:
    """Every project of the caller, by name."""
    query = select(Project).order_by(Project.name)
    if caller.project_id is not None:
        query = query.where(Project.id == caller.project_id)
    return list(await session.scalars(query))


async def ensure_project(session: WriteSession, name: str, caller: Principal) -> tuple[Project, bool]:
    """The project of that name, made when it is not there, and whether it was made now."""
    if caller.project_id is not None:
        own = await session.get(Project, caller.project_id)
        if own is None or own.name != name:
            raise Forbidden("this token belongs to another project", hint="use a token for all projects")
        return own, False
    new = await insert_new(session, Project, id=new_id(), name=name, last_number=0, created_at=utcnow())
    return (await session.scalars(select(Project).where(Project.name == name))).one(), new
