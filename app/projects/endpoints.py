"""Projects over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from app.deps import Caller, Db, IdempotencyKeyHeader, Reading
from app.errors import problems
from app.idempotency import Outcome, digest_of, once
from app.models import Project
from app.projects import queries
from app.projects.schemas import ProjectIn, ProjectList, ProjectOut

router = APIRouter(prefix="/projects", tags=["projects"])


@router.get("")
async def list_projects(session: Reading, caller: Caller) -> ProjectList:
    """Every project that the caller may see."""
    return ProjectList(items=[_out(p) for p in await queries.all_projects(session, caller)])


@router.post(
    "",
    status_code=201,
    response_model=ProjectOut,
    responses={200: {"model": ProjectOut, "description": "It was there already"}, **problems(409)},
)
async def create_project(
    request: Request, body: ProjectIn, database: Db, caller: Caller, key: IdempotencyKeyHeader = None
) -> JSONResponse:
    """Make a project; one that exists under that name is answered with 200."""

    async def act() -> Outcome:
        project, new = await queries.ensure_project(session, body.name, caller)
        return Outcome(201 if new else 200, _out(project).model_dump(mode="json"))

    async with database.write() as session:
        outcome = await once(session, request.url.path, key, digest_of(body.model_dump_json().encode()), act)
    return outcome.response()


def _out(project: Project) -> ProjectOut:
    return ProjectOut(id=project.id, name=project.name, created_at=project.created_at)
