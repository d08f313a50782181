"""A run is analysed again from what it was given, also when the raw trace is gone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import update

from app.cli import main
from app.db import Database
from app.ingest.again import reanalyze, runs_with_traces
from app.ingest.tasks import Stale, analyzed, perform
from app.ingest.traces import Trace
from app.jobs import queue
from app.models import Run
from app.settings import Settings
from rooflight.calibration import Calibration
from rooflight.errors import Refused
from rooflight.readers.source import Limits
from rooflight.results.result import RankResult
from tests.app.conftest import Service

T = TypeVar("T")


def a_trace(rank: int) -> dict[str, Any]:
    """aten::mm of two 64 x 64 fp32, launched at 2 us, on the device from 10 to 30 us."""
    dims = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
    where = {"device": 0, "context": 1, "stream": 7, "correlation": 1}
    rows = [
        ("cpu_op", "aten::mm", 0, 8, dims),
        ("cuda_runtime", "cudaLaunchKernel", 2, 2, {"correlation": 1}),
        ("kernel", "sgemm", 10, 20, where),
    ]
    events = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}
        for cat, name, ts, dur, args in rows
    ]
    return {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}


def a_cat() -> dict[str, Any]:
    """aten::cat of two 4 x 4 whose type no row has, in process 1."""
    trace = a_trace(0)
    op = {
        "Input Dims": [[[4, 4], [4, 4]], []],
        "Input type": ["TensorList", "Scalar"],
        "Record function id": 5,
    }
    trace["traceEvents"][0] |= {"name": "aten::cat", "args": op | {"Concrete Inputs": ["", "0"]}}
    trace["traceEvents"][2]["name"] = "k"
    return trace


def its_execution_trace(pid: int = 1) -> dict[str, Any]:
    """The types of the list: bf16."""
    inputs = {"values": [[], 0], "types": ["GenericList[Tensor(c10::BFloat16),Tensor(c10::BFloat16)]", "Int"],
              "shapes": [[[4, 4], [4, 4]], []], "strides": [[[4, 1], [4, 1]], []]}  # fmt: skip
    nothing: dict[str, Any] = {"values": [], "types": [], "shapes": [], "strides": []}
    node = {"id": 9, "name": "aten::cat", "ctrl_deps": 2, "inputs": inputs, "outputs": nothing}
    node["attrs"] = [{"name": "rf_id", "type": "uint64", "value": 5}]
    return {"schema": "1.1.1-chakra.0.0.4", "pid": pid, "nodes": [node]}


def with_database(settings: Settings, act: Callable[[Database], Awaitable[T]]) -> T:
    async def run() -> T:
        database = Database(settings.url, pooled=False)
        try:
            return await act(database)
        finally:
            await database.close()

    return asyncio.run(run())


def a_run_of(service: Service, *ranks: int) -> str:
    """A run whose ranks were sent and analysed."""
    run = service.a_run()
    for rank in ranks:
        assert send(service, run, f"r{rank}.json", a_trace(rank)) == "done"
    return run


def send(service: Service, run: str, name: str, body: dict[str, Any]) -> str:
    """The state in which the job of this file ends."""
    sent = service.post(f"/runs/{run}/traces", params={"filename": name}, content=json.dumps(body))
    assert sent.status_code == 202
    return with_database(service.settings, lambda db: _do(service.settings, db))


async def _do(settings: Settings, database: Database) -> str:
    async with database.write() as session:
        job = await queue.claim(session, "w", 60)
    assert job is not None
    return await perform(job.id, "w", settings, database, analyzed)


def files(service: Service, folder: str) -> list[Path]:
    return sorted(p for p in (service.settings.data / folder).rglob("*") if p.is_file())


def again(service: Service, run: str, analyzer: Any = analyzed) -> int:
    return with_database(service.settings, lambda db: reanalyze(run, service.settings, db, analyzer))


def test_a_run_whose_raw_traces_are_gone_is_analysed_again(service: Service) -> None:
    """2 x 64^3 = 524,288 FLOPs on each rank."""
    run = a_run_of(service, 0, 1)
    before = service.get(f"/runs/{run}/analysis").json()
    launches = service.get(f"/runs/{run}/launches").json()
    old = files(service, "events")
    for raw in files(service, "blobs"):
        raw.unlink()
    assert again(service, run) == 2
    assert service.get(f"/runs/{run}/analysis").json() == before
    assert [r["kernels"][0]["flops"] for r in before["ranks"]] == ["524288", "524288"]
    assert service.get(f"/runs/{run}/launches").json() == launches
    assert launches["total"] == 2
    # A file for each profile, as before, and none of those that were.
    assert len(files(service, "events")) == len(old) == 2
    assert not set(files(service, "events")) & set(old)


def test_a_rank_that_comes_later_finds_the_others_without_their_raw_traces(service: Service) -> None:
    run = a_run_of(service, 0)
    [raw] = files(service, "blobs")
    raw.unlink()
    assert service.post(f"/runs/{run}/traces", content=json.dumps(a_trace(1))).status_code == 202
    assert with_database(service.settings, lambda db: _do(service.settings, db)) == "done"
    assert service.get(f"/runs/{run}").json()["state"] == "ready"
    assert [r["rank"] for r in service.get(f"/runs/{run}/analysis").json()["ranks"]] == [0, 1]


def test_what_the_program_knows_now_is_in_the_new_analysis(service: Service) -> None:
    run = a_run_of(service, 0)

    def better(
        trace: Trace, limits: Limits, calibrations: list[Calibration]
    ) -> tuple[RankResult, Mapping[str, Any]]:
        result, launches = analyzed(trace, limits, calibrations)
        result.rank.kernels[0].family = "better"
        return result, launches

    again(service, run, better)
    assert service.get(f"/runs/{run}/kernels").json()["items"][0]["family"] == "better"


def test_without_trace_and_timeline_the_run_stays_as_it_was(service: Service) -> None:
    run = a_run_of(service, 0)
    before = service.get(f"/runs/{run}/analysis").json()
    events = files(service, "events")
    for path in [*files(service, "blobs"), *files(service, "timelines")]:
        path.unlink()
    with pytest.raises(Refused, match=r"cannot read the file: no such file or directory \(r0.json\)"):
        again(service, run)
    assert service.get(f"/runs/{run}/analysis").json() == before
    assert files(service, "events") == events


def test_a_run_that_changes_meanwhile_is_left(service: Service) -> None:
    run = a_run_of(service, 0)
    events = files(service, "events")

    def meanwhile(*given: Any) -> Any:
        # In a thread of its own: this one has a loop that waits for us.
        other = threading.Thread(target=lambda: asyncio.run(_bump(service.settings, run)))
        other.start()
        other.join()
        return analyzed(*given)

    with pytest.raises(Stale):
        again(service, run, meanwhile)
    assert files(service, "events") == events


async def _bump(settings: Settings, run: str) -> None:
    database = Database(settings.url, pooled=False)
    async with database.write() as session:
        await session.execute(update(Run).where(Run.id == run).values(version=Run.version + 1))
    await database.close()


def test_a_refused_trace_leaves_no_timeline(service: Service) -> None:
    run = a_run_of(service, 0)
    kept = files(service, "timelines")
    assert len(kept) == 1
    twice = a_trace(0) | {"host_name": "another file of the same rank"}
    assert service.post(f"/runs/{run}/traces", content=json.dumps(twice)).status_code == 202
    assert with_database(service.settings, lambda db: _do(service.settings, db)) == "refused"
    assert files(service, "timelines") == kept


@pytest.mark.parametrize("gone", ["both", "the execution trace"])
def test_an_execution_trace_that_follows_its_trace_completes_it_for_good(service: Service, gone: str) -> None:
    """2 x 16 bf16 elements are read and written: 128 bytes."""
    run = service.a_run()
    assert send(service, run, "t.json", a_cat()) == "done"
    assert service.get(f"/runs/{run}/kernels").json()["items"][0]["bytes"] is None
    old = files(service, "events")
    assert send(service, run, "et.json", its_execution_trace()) == "done"

    def seen() -> Any:
        [kernel] = service.get(f"/runs/{run}/kernels").json()["items"]
        [launch] = service.get(f"/runs/{run}/launches").json()["items"]
        return kernel["bytes"], kernel["cost_reason"], launch["moved_bytes"]

    assert seen() == ("128", "execution trace", "128")
    assert service.get(f"/runs/{run}").json()["source"] == "t.json with et.json"
    assert len(files(service, "events")) == 1
    assert files(service, "events") != old
    assert send(service, run, "more.json", its_execution_trace() | {"time": "later"}) == "refused"
    # Its timeline was kept with what it told.
    for raw in files(service, "blobs"):
        if gone == "both" or b"schema" in raw.read_bytes():
            raw.unlink()
    assert again(service, run) == 1
    assert seen() == ("128", "execution trace", "128")


def test_an_execution_trace_without_its_trace_is_refused_and_leaves_nothing(service: Service) -> None:
    run = service.a_run()
    assert send(service, run, "et.json", its_execution_trace()) == "refused"
    assert service.files() == files(service, "timelines") == []
    assert send(service, run, "t.json", a_cat()) == "done"
    kept = service.files()
    assert send(service, run, "et.json", its_execution_trace(pid=2)) == "refused"
    assert service.get(f"/runs/{run}").json()["problem"]["title"] == (
        "et.json is no execution trace of t.json: it is of process 2, which the trace does not know"
    )
    assert service.files() == kept


def test_the_command_goes_over_all_runs_and_names_those_that_it_cannot(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = a_run_of(service, 0, 1), a_run_of(service, 0)
    service.a_run()  # given nothing
    assert with_database(service.settings, runs_with_traces) == [good, bad]
    where = ["--data", str(service.settings.data), "--database", str(service.settings.database)]
    assert main(["reanalyze", *where, bad]) == 0
    capsys.readouterr()
    assert main(["reanalyze", *where]) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines() == [f"{good}: 2 rank(s)", f"{bad}: 1 rank(s)"]
    assert main(["reanalyze", *where, "no-such-run"]) == 2
    assert "no-such-run" in capsys.readouterr().err
