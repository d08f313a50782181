"""Jobs over HTTP."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import select

from app.deps import Caller, Reading
from app.errors import problems
from app.jobs.schemas import JobOut
from app.models import Job, Run
from app.problems import NotFound, Problem
from app.text import clean

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("/{job_id}", responses=problems(404))
async def get_job(job_id: str, session: Reading, caller: Caller) -> JobOut:
    """How far the analysis of a trace is."""
    query = select(Job).join(Run, Run.id == Job.run_id).where(Job.id == clean(job_id))
    if caller.project_id is not None:
        query = query.where(Run.project_id == caller.project_id)
    job = await session.scalar(query)
    if job is None:
        raise NotFound("there is no such job", where=f"job {clean(job_id)}")
    return job_out(job)


def job_out(job: Job) -> JobOut:
    """A job as it is answered."""
    return JobOut(
        id=job.id,
        run_id=job.run_id,
        state=job.state,
        stage=job.stage,
        attempts=job.attempts,
        source=job.source,
        problem=Problem(**job.problem) if job.problem else None,
        created_at=job.created_at,
        finished_at=job.finished_at,
    )
