"""Jobs: each in its own process, tried three times, taken over from the dead; refused ones leave nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from app.blobs import BlobStore
from app.db import Database
from app.ingest.tasks import Stale, perform
from app.jobs import queue
from app.models import Blob, Job, Profile, utcnow
from app.settings import Settings
from tests.app import acting_child
from tests.app.conftest import Service, a_service

CHILD = (sys.executable, str(Path(acting_child.__file__)))


@pytest.fixture
def working(settings: Settings) -> Iterator[Service]:
    """A service with one worker, whose analysis does what the trace says."""
    with a_service(
        settings.model_copy(update={"workers": 1, "worker_memory_mib": 2048}), child=CHILD
    ) as running:
        yield running


def send(service: Service, run: str, name: str = "t.json", **trace: Any) -> str:
    answer = service.post(f"/runs/{run}/traces", params={"filename": name}, content=json.dumps(trace))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job"]["id"])


def wait(service: Service, job: str, seconds: float = 90) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = service.get(f"/jobs/{job}").json()
        if seen["state"] not in ("queued", "running"):
            return seen
        time.sleep(0.05)
    raise AssertionError(f"still {seen}")


def test_a_job_is_done_in_a_process_of_its_own(working: Service) -> None:
    run = working.a_run()
    job = wait(working, send(working, run, name="rank0.json"))
    assert (job["state"], job["attempts"], job["problem"], job["stage"]) == ("done", 1, None, None)
    seen = working.get(f"/runs/{run}").json()
    assert (seen["state"], seen["source"], seen["n_steps"]) == ("ready", "rank0.json", 2)
    assert working.get(f"/runs/{run}/kernels").json()["total"] == 3
    assert working.get(f"/runs/{run}/launches").json()["total"] == 2
    assert [f.partition("/")[0] for f in working.files()] == ["blobs", "events"]
    assert [r["id"] for r in working.get("/runs").json()["items"]] == [run]


def test_a_refused_trace_leaves_nothing_but_its_reason(working: Service) -> None:
    run = working.a_run()
    job = wait(working, send(working, run, name="bad.json", do="refuse"))
    assert (job["state"], job["attempts"]) == ("refused", 1)
    problem = job["problem"]
    assert (problem["status"], problem["title"], problem["hint"]) == (422, "no traceEvents", "send a trace")
    # The place is named by the file that was sent, not by where the store keeps it.
    assert problem["where"] == "bad.json: byte 12"
    assert working.files() == []
    assert working.get("/runs", params={"pending": True}).json()["items"] == []
    assert working.get(f"/runs/{run}").json()["state"] == "refused"
    assert working.get(f"/runs/{run}/analysis").status_code == 404
    # The same process, the same run: a good one is taken.
    assert wait(working, send(working, run))["state"] == "done"
    assert working.get(f"/runs/{run}").json()["problem"] is None


def test_a_refused_trace_does_not_harm_what_the_run_has(working: Service) -> None:
    run = working.a_run()
    wait(working, send(working, run))
    before = working.get(f"/runs/{run}/analysis").json()
    wait(working, send(working, run, do="refuse"))
    seen = working.get(f"/runs/{run}").json()
    assert (seen["state"], seen["problem"]["title"]) == ("ready", "no traceEvents")
    assert working.get(f"/runs/{run}/analysis").json() == before


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("fill memory", "more memory than its limit of 2048 MiB"),
        ("die", "killed (SIGKILL)"),
        ("raise", "KeyError"),
    ],
)
def test_a_job_that_dies_is_tried_three_times_and_others_go_on(
    working: Service, do: str, reason: str
) -> None:
    bad_run, good_run = working.a_run(), working.a_run()
    bad, good = send(working, bad_run, do=do), send(working, good_run)
    job = wait(working, bad)
    assert (job["state"], job["attempts"]) == ("failed", 3)
    assert reason in job["problem"]["detail"]
    assert "Traceback" not in json.dumps(job)
    assert wait(working, good)["state"] == "done"
    assert working.get(f"/runs/{bad_run}").json()["state"] == "failed"
    assert [r["id"] for r in working.get("/runs").json()["items"]] == [good_run]


def test_a_job_that_takes_too_long_is_ended(settings: Settings) -> None:
    short = settings.model_copy(update={"workers": 1, "job_seconds": 2.5})
    with a_service(short, child=CHILD) as service:
        run = service.a_run()
        job = wait(service, send(service, run, do="sleep", seconds=600))
    assert (job["state"], job["attempts"]) == ("failed", 3)
    assert "more than 2.5 s" in job["problem"]["detail"]


def test_two_ranks_sent_to_one_run_become_one_analysis(settings: Settings) -> None:
    with a_service(settings.model_copy(update={"workers": 2}), child=CHILD) as service:
        run = service.a_run()
        jobs = [send(service, run, name=f"r{r}.json", rank=r) for r in (0, 1)]
        assert {wait(service, j)["state"] for j in jobs} == {"done"}
        assert [r["rank"] for r in service.get(f"/runs/{run}/analysis").json()["ranks"]] == [0, 1]
        # Two launches each, in a file each.
        assert service.get(f"/runs/{run}/launches").json()["total"] == 4


def test_a_server_that_stops_puts_its_job_back(settings: Settings) -> None:
    busy = settings.model_copy(update={"workers": 1})
    with a_service(busy, child=CHILD) as service:
        run = service.a_run()
        job = send(service, run, do="sleep", seconds=600)
        end = time.monotonic() + 30
        while service.get(f"/jobs/{job}").json()["state"] != "running" and time.monotonic() < end:
            time.sleep(0.05)
    with a_service(settings) as service:
        seen = service.get(f"/jobs/{job}").json()
        assert (seen["state"], seen["attempts"]) == ("queued", 0)


class Bench:
    """The parts of a service, without its loops: jobs are taken and done by hand."""

    def __init__(self, service: Service) -> None:
        self.service, self.settings = service, service.settings
        self.database: Database = service.app.state.database
        assert service.client.portal is not None
        self.call = service.client.portal.call

    def claim(self, worker: str) -> str | None:
        async def take() -> str | None:
            async with self.database.write() as session:
                job = await queue.claim(session, worker, 5)
                return job.id if job else None

        return self.call(take)

    def do(self, job: str, worker: str, analyzer: Any = acting_child.analyzed) -> str:
        return self.call(lambda: perform(job, worker, self.settings, self.database, analyzer))

    def reclaim(self) -> int:
        async def back() -> int:
            async with self.database.write() as session:
                return await queue.reclaim(session)

        return self.call(back)

    def change(self, job: str, **values: Any) -> None:
        async def change() -> None:
            async with self.database.write() as session:
                await session.execute(update(Job).where(Job.id == job).values(**values))

        self.call(change)


@pytest.fixture
def bench(service: Service) -> Bench:
    return Bench(service)


def test_a_job_is_taken_once_and_jobs_of_a_run_follow_each_other(bench: Bench) -> None:
    one, two = bench.service.a_run(), bench.service.a_run()
    first, second, third = (
        send(bench.service, one),
        send(bench.service, one, rank=1),
        send(bench.service, two),
    )
    assert bench.claim("w1") == first
    assert bench.claim("w2") == third
    assert bench.claim("w3") is None  # the second of run one waits for the first
    assert bench.do(first, "w1") == "done"
    assert bench.claim("w3") == second


def test_a_job_of_a_dead_process_of_this_host_is_taken_back_at_once(bench: Bench) -> None:
    job = send(bench.service, bench.service.a_run())
    dead = f"{socket.gethostname()}/999999999/1@boot"
    assert queue.is_dead(dead)
    assert not queue.is_dead(queue.this_worker())
    assert not queue.is_dead("another-host/1/1@boot")
    assert bench.claim(dead) == job
    assert bench.reclaim() == 1
    assert bench.service.get(f"/jobs/{job}").json()["state"] == "queued"
    assert bench.claim("w") == job


def test_a_living_job_is_left_alone_until_its_lease_ends(bench: Bench) -> None:
    job = send(bench.service, bench.service.a_run())
    assert bench.claim("another-host/1/1@boot") == job
    assert bench.reclaim() == 0
    bench.change(job, lease_until=utcnow() - timedelta(seconds=1))
    assert bench.reclaim() == 1
    assert bench.claim("w") == job


def test_a_worker_that_dies_every_time_ends_the_job(bench: Bench) -> None:
    run = bench.service.a_run()
    job = send(bench.service, run)
    for _ in range(3):
        assert bench.claim(f"{socket.gethostname()}/999999999/1@boot") == job
        bench.reclaim()
    seen = bench.service.get(f"/jobs/{job}").json()
    assert (seen["state"], seen["attempts"]) == ("failed", 3)
    assert "worker died" in seen["problem"]["detail"]


def test_who_lost_the_lease_stores_nothing(bench: Bench) -> None:
    run = bench.service.a_run()
    job = send(bench.service, run)
    bench.claim("slow")

    def meanwhile(*args: Any) -> Any:
        # In a thread of its own: the analysis blocks the loop that the bench uses.
        settings = bench.settings

        async def steal() -> None:
            database = Database(settings.url, pooled=False)
            async with database.write() as session:
                await session.execute(update(Job).where(Job.id == job).values(worker="other"))
            await database.close()

        import threading

        thread = threading.Thread(target=lambda: asyncio.run(steal()))
        thread.start()
        thread.join()
        return acting_child.analyzed(*args)

    with pytest.raises(queue.LeaseLost):
        bench.do(job, "slow", meanwhile)
    assert [f.partition("/")[0] for f in bench.service.files()] == ["blobs"]
    assert bench.service.get("/runs").json()["items"] == []


def test_what_was_analysed_on_an_older_state_is_done_again(bench: Bench) -> None:
    """While rank 0 is analysed, rank 1 is pushed: storing the analysis of rank 0 alone would lose it."""
    service = bench.service
    run = service.a_run()
    job = send(service, run)
    bench.claim("w")
    work = acting_child.analyzed

    async def bump() -> None:
        from app.models import Run

        database = Database(bench.settings.url, pooled=False)
        async with database.write() as session:
            await session.execute(update(Run).where(Run.id == run).values(version=Run.version + 1))
        await database.close()

    def meanwhile(*args: Any) -> Any:
        import threading

        thread = threading.Thread(target=lambda: asyncio.run(bump()))
        thread.start()
        thread.join()
        return work(*args)

    with pytest.raises(Stale):
        bench.do(job, "w", meanwhile)
    assert bench.do(job, "w") == "done"


def test_bytes_that_another_job_needs_outlive_a_refusal(bench: Bench) -> None:
    one, two = bench.service.a_run(), bench.service.a_run()
    first, second = send(bench.service, one, do="refuse"), send(bench.service, two, do="refuse")
    bench.claim("w")
    assert bench.do(first, "w") == "refused"
    assert len(bench.service.files()) == 1
    bench.claim("w")
    assert bench.do(second, "w") == "refused"
    assert bench.service.files() == []

    async def rows() -> list[Any]:
        async with bench.database.read() as session:
            return [*await session.scalars(select(Blob)), *await session.scalars(select(Profile))]

    assert bench.call(rows) == []


def test_the_newest_calibration_of_each_device_is_used(bench: Bench) -> None:
    for day, device in ((1, "Tesla V100"), (3, "tesla  v100"), (2, "CPU X")):
        body = {"device": device, "kind": "gpu", "measured_at": f"2026-03-0{day}T00:00:00Z"}
        assert bench.service.post("/calibrations", json=body).status_code == 201
    run = bench.service.a_run()
    job = send(bench.service, run)
    bench.claim("w")
    bench.do(job, "w")
    [rank] = bench.service.get(f"/runs/{run}/analysis").json()["ranks"]
    assert json.loads(rank["software"]["told"]) == {
        "calibrated": ["tesla  v100", "CPU X"], "limit": 32 * 2**20
    }  # fmt: skip


def test_an_old_upload_that_nobody_finished_is_swept(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    upload = store.incoming()
    upload.write(b"half")
    assert store.sweep(older_than_s=60) == 0
    assert store.sweep(older_than_s=-1) == 1
    assert list((tmp_path / "incoming").iterdir()) == []
    upload.__exit__(None, None, None)
