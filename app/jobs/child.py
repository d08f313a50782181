"""The process of one attempt at one job.

It reads its orders as JSON from standard input and writes how it ended as the last line of standard output.
When it is killed it writes nothing, and the exit status tells.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.ingest.tasks import Analyzer

MEMORY, STALE, LOST, ERROR = "memory", "stale", "lost", "error"


def main(analyzer: Analyzer | None = None) -> int:
    """Do as ordered; 0 whenever the outcome could be told.  ``analyzer`` replaces that of the product."""
    orders = json.loads(sys.stdin.buffer.read())
    _die_with_parent(orders["parent"])
    _limit_memory(orders["settings"]["worker_memory_mib"])
    outcome, detail = _attempt(orders, analyzer)
    sys.stdout.write(json.dumps({"outcome": outcome, "detail": detail}) + "\n")
    sys.stdout.flush()
    return 0


def _attempt(orders: dict[str, Any], analyzer: Analyzer | None) -> tuple[str, str]:
    # Imported here: under the memory limit, and after the promise to die with the parent.
    from app.db import Database
    from app.ingest.tasks import Stale, analyzed, perform
    from app.jobs.queue import LeaseLost
    from app.settings import Settings

    async def work() -> str:
        settings = Settings.model_validate(orders["settings"])
        database = Database(settings.url, pooled=False)
        try:
            do = analyzer or analyzed
            return await perform(orders["job_id"], orders["worker"], settings, database, do)
        finally:
            await database.close()

    try:
        return asyncio.run(work()), ""
    except MemoryError:
        return MEMORY, ""
    except Stale:
        return STALE, ""
    except LeaseLost:
        return LOST, ""
    except Exception as error:
        traceback.print_exc()
        return ERROR, f"{type(error).__name__}: {error}"[:500]


def _die_with_parent(parent: int) -> None:
    """No analysis outlives its server, or two would work on one job."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)


def _limit_memory(mib: int) -> None:
    """Past the limit an allocation fails here instead of the machine running out."""
    # Each thread of a BLAS reserves address space, which the limit counts.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    size = mib * 2**20
    try:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (ValueError, OSError):
        traceback.print_exc()
    # And if the machine runs out all the same, this process goes first, not the server.
    score = Path("/proc/self/oom_score_adj")
    if score.exists():
        score.write_text("500")


if __name__ == "__main__":
    sys.exit(main())
