"""The job rows: put, taken under a lease, kept alive, ended.  Every change is one short transaction."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from sqlalchemy import and_, exists, or_, select, update
from sqlalchemy.orm import aliased

from app.db import Database, WriteSession
from app.models import Blob, Job, Profile, Run, utcnow
from app.models.jobs import DONE, FAILED, MAX_ATTEMPTS, QUEUED, REFUSED, RUNNING
from app.problems import Problem


class LeaseLost(Exception):  # noqa: N818
    """Another worker has the job now: what this one did must not be stored."""


@lru_cache(maxsize=1)
def this_worker() -> str:
    """Host, process and its start: no other process, past or present, has the same."""
    return f"{socket.gethostname()}/{os.getpid()}/{_started(os.getpid())}"


def is_dead(worker: str) -> bool:
    """Whether ``worker`` ran on this host and is surely gone.  Of other hosts only leases can tell."""
    host, _, rest = worker.partition("/")
    pid, _, started = rest.partition("/")
    return host == socket.gethostname() and pid.isdecimal() and _started(int(pid)) != started


def _started(pid: int) -> str:
    """Start of a process in clock ticks since boot, with the boot's identity; empty when it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return _alive_elsewhere(pid)
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended; its parent has only not noticed.
    return "" if fields[0] == "Z" else f"{fields[19]}@{boot}"


def _alive_elsewhere(pid: int) -> str:
    """Without /proc only the pid itself can be asked."""
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"


async def claim(session: WriteSession, worker: str, lease_s: float) -> Job | None:
    """The oldest job that waits, now this worker's; jobs of one run follow each other."""
    other = aliased(Job)
    busy = exists().where(and_(other.run_id == Job.run_id, other.state == RUNNING))
    oldest = (
        select(Job.id)
        .where(Job.state == QUEUED, ~busy)
        .order_by(Job.created_at, Job.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    job_id = await session.scalar(oldest)
    if job_id is None:
        return None
    now = utcnow()
    taken = (
        update(Job)
        .where(Job.id == job_id, Job.state == QUEUED)
        .values(
            state=RUNNING,
            worker=worker,
            attempts=Job.attempts + 1,
            heartbeat_at=now,
            lease_until=now + timedelta(seconds=lease_s),
            stage="starting",
        )
        .returning(Job)
    )
    return await session.scalar(taken)


async def beat(session: WriteSession, worker: str, lease_s: float) -> None:
    """Keep every job of this worker."""
    now = utcnow()
    mine = update(Job).where(Job.worker == worker, Job.state == RUNNING)
    await session.execute(mine.values(heartbeat_at=now, lease_until=now + timedelta(seconds=lease_s)))


async def own(session: WriteSession, job_id: str, worker: str) -> Job:
    """The job, locked (its run first); :class:`LeaseLost` when it is not this worker's any more."""
    await session.execute(
        select(Run.id).join(Job, Job.run_id == Run.id).where(Job.id == job_id).with_for_update(of=Run)
    )
    query = select(Job).where(Job.id == job_id, Job.worker == worker, Job.state == RUNNING).with_for_update()
    job = await session.scalar(query)
    if job is None:
        raise LeaseLost(job_id)
    return job


async def set_stage(database: Database, job_id: str, worker: str, stage: str) -> None:
    """Tell who waits how far it is."""
    async with database.write() as session:
        (await own(session, job_id, worker)).stage = stage


def end(job: Job, state: str, problem: Problem | None = None) -> None:
    """The job is over."""
    job.state, job.stage, job.finished_at = state, None, utcnow()
    job.lease_until = None
    job.problem = problem.model_dump() if problem else None


def done(job: Job) -> None:
    """The job has stored its result."""
    end(job, DONE)


async def refuse(session: WriteSession, job: Job, problem: Problem) -> bool:
    """The input cannot be used: no row of it stays.  True when its blob belongs to nobody now."""
    end(job, REFUSED, problem)
    await _tell_run(session, job, REFUSED, problem)
    await session.flush()
    return await forget_blob(session, job.blob_id)


async def attempt_failed(session: WriteSession, job: Job, reason: str, hint: str = "") -> str:
    """One attempt is lost; the state that follows: queued, or failed after the last."""
    if job.attempts < MAX_ATTEMPTS:
        job.state, job.worker, job.lease_until, job.stage = QUEUED, None, None, None
        return QUEUED
    problem = Problem(
        type="urn:rooflight:problem:job-failed",
        title="the analysis failed",
        status=500,
        detail=f"tried {job.attempts} times, then given up: {reason}",
        where=job.source,
        hint=hint,
    )
    end(job, FAILED, problem)
    await _tell_run(session, job, FAILED, problem)
    return FAILED


def put_back(job: Job) -> None:
    """Nobody's fault: the attempt does not count."""
    job.state, job.worker, job.lease_until, job.stage = QUEUED, None, None, None
    job.attempts = max(0, job.attempts - 1)


async def reclaim(session: WriteSession) -> int:
    """Take back the jobs of workers that died; returns how many."""
    now, n = utcnow(), 0
    running = select(Job.id, Job.run_id, Job.worker, Job.lease_until).where(Job.state == RUNNING)
    for job_id, run_id, worker, until in (await session.execute(running.order_by(Job.run_id))).all():
        expired = until is None or until < now
        if not expired and not (worker is not None and is_dead(worker)):
            continue
        # Locks are taken run first, job second, everywhere: no two transactions wait for each other.
        await session.execute(select(Run.id).where(Run.id == run_id).with_for_update())
        same = select(Job).where(Job.id == job_id, Job.state == RUNNING, Job.worker == worker)
        job = await session.scalar(same.where(Job.lease_until == until).with_for_update())
        if job is not None:
            await attempt_failed(session, job, "the worker died during the analysis")
            n += 1
    return n


async def forget_blob(session: WriteSession, blob_id: str) -> bool:
    """Delete the blob's row unless something needs it; the caller deletes the file before it commits."""
    blob = await session.scalar(select(Blob).where(Blob.id == blob_id).with_for_update())
    if blob is None:
        return False
    open_jobs = exists().where(Job.blob_id == blob_id, Job.state.in_((QUEUED, RUNNING, DONE, FAILED)))
    profiles = exists().where(Profile.blob_id == blob_id)
    if await session.scalar(select(or_(open_jobs, profiles))):
        return False
    await session.delete(blob)
    return True


async def _tell_run(session: WriteSession, job: Job, state: str, problem: Problem) -> None:
    """The run shows why; one with an accepted profile stays ready."""
    run = await session.scalar(select(Run).where(Run.id == job.run_id).with_for_update())
    if run is None:
        return
    waiting = exists().where(Job.run_id == run.id, Job.id != job.id, Job.state.in_((QUEUED, RUNNING)))
    if run.listed:
        run.state = "ready"
    elif not await session.scalar(select(waiting)):
        run.state = state
    run.problem = problem.model_dump()
