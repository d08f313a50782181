"""Takes jobs and runs each in a child process, as many at once as there are workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence

import structlog
from sqlalchemy.exc import DBAPIError

from app.db import Database
from app.jobs import child, queue
from app.models import Job
from app.models.jobs import DONE, REFUSED
from app.settings import Settings

log = structlog.get_logger()
# -P: a folder called app/ in the working directory must not be taken for ours.
CHILD = (sys.executable, "-P", "-m", "app.jobs.child")
_POLL_S = 1.0
_LINE = 2**16


class Runner:
    """The jobs of this process.  ``command`` is what a child runs."""

    def __init__(self, database: Database, settings: Settings, command: Sequence[str] = CHILD) -> None:
        self._database, self._settings, self._command = database, settings, tuple(command)
        self._worker = queue.this_worker()
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Take back what dead workers left, then begin."""
        async with self._database.write() as session:
            if n := await queue.reclaim(session):
                log.info("jobs taken back from dead workers", jobs=n)
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(self._settings.workers)]
        self._tasks.append(asyncio.create_task(self._keep()))

    def wake(self) -> None:
        """A job was put; do not wait for the next look."""
        self._news.set()

    async def stop(self) -> None:
        """End the children; their jobs are put back for the next server."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def _serve(self) -> None:
        while True:
            self._news.clear()
            try:
                job = await self._claim()
                if job is not None:
                    await self._run(job)
                    continue
            except DBAPIError as error:
                log.error("the job queue cannot be reached", exc_info=error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _POLL_S)

    async def _keep(self) -> None:
        """Heartbeats, and a look for workers that died."""
        while True:
            await asyncio.sleep(self._settings.lease_seconds / 3)
            try:
                async with self._database.write() as session:
                    await queue.beat(session, self._worker, self._settings.lease_seconds)
                    await queue.reclaim(session)
            except DBAPIError as error:
                log.error("no heartbeat", exc_info=error)

    async def _claim(self) -> Job | None:
        async with self._database.write() as session:
            return await queue.claim(session, self._worker, self._settings.lease_seconds)

    async def _run(self, job: Job) -> None:
        log.info("job starts", job=job.id, attempt=job.attempts, source=job.source)
        try:
            outcome, detail = await self._attempt(job)
        except asyncio.CancelledError:
            await asyncio.shield(self._settle(job, child.STALE, ""))
            raise
        await self._settle(job, outcome, detail)

    async def _attempt(self, job: Job) -> tuple[str, str]:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._settings.job_seconds):
                out, _ = await process.communicate(self._orders(job))
        except TimeoutError:
            return child.ERROR, f"it took more than {self._settings.job_seconds:g} s"
        finally:
            await _end(process)
        return _outcome(out, process.returncode or 0)

    def _orders(self, job: Job) -> bytes:
        orders = {
            "job_id": job.id,
            "worker": self._worker,
            "parent": os.getpid(),
            "settings": self._settings.model_dump(mode="json"),
        }
        return json.dumps(orders).encode()

    async def _settle(self, job: Job, outcome: str, detail: str) -> None:
        """Write down how the attempt ended, unless the child did or the job is not ours any more."""
        if outcome in (DONE, REFUSED, child.LOST):
            log.info("job ends", job=job.id, outcome=outcome)
            return
        with contextlib.suppress(queue.LeaseLost):
            async with self._database.write() as session:
                held = await queue.own(session, job.id, self._worker)
                if outcome == child.STALE:
                    queue.put_back(held)
                    return
                state = await queue.attempt_failed(session, held, *self._reason(outcome, detail))
            log.warning("attempt failed", job=job.id, outcome=outcome, detail=detail, state=state)

    def _reason(self, outcome: str, detail: str) -> tuple[str, str]:
        if outcome == child.MEMORY:
            mib = self._settings.worker_memory_mib
            return (
                f"the analysis needs more memory than its limit of {mib} MiB",
                "record fewer steps, or raise ROOFLIGHT_WORKER_MEMORY_MIB",
            )
        return detail, "the server's log says more"


def _outcome(out: bytes, status: int) -> tuple[str, str]:
    if status < 0:
        return child.ERROR, f"the analysis was killed ({signal.Signals(-status).name})"
    try:
        told = json.loads(out[-_LINE:].splitlines()[-1])
        return str(told["outcome"]), str(told["detail"])
    except (IndexError, KeyError, TypeError, ValueError):
        return child.ERROR, f"the analysis ended with status {status}"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
