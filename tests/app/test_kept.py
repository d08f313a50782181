"""A rank that joins a run is read; those that were there are not read again, unless that would say more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from app.ingest import kept as module
from app.ingest.again import reanalyze
from app.ingest.kept import keep, kept
from app.ingest.tasks import analyzed
from app.ingest.traces import Trace
from app.models import KernelRow
from rooflight import analyze_files
from rooflight.calibration import Calibration
from rooflight.readers.limits import Limits
from tests.app import acting_child
from tests.app.conftest import Service
from tests.app.test_jobs import Bench, send
from tests.rooflight.test_pool import trace

V100, A100 = (
    Calibration(device=name, kind="gpu", measured_at="2026-01-01T00:00:00Z", gemm_tflops={"fp16": 90.0})
    for name in ("Tesla V100-DGXS-32GB", "A100")
)


@pytest.fixture
def bench(service: Service) -> Bench:
    return Bench(service)


class Reading:
    """The analyzer of the tests, which notes what it reads."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __call__(self, given: Trace, *args: Any) -> Any:
        self.read.append(json.loads(given.path.read_bytes()).get("rank", 0))
        return acting_child.analyzed(given, *args)


def add(bench: Bench, run: str, rank: int) -> list[int]:
    """Send a rank and do its job; the ranks that were read for it."""
    reading = Reading()
    job = send(bench.service, run, name=f"r{rank}.json", rank=rank)
    assert bench.claim("w") == job
    assert bench.do(job, "w", reading) == "done"
    return reading.read


def test_each_rank_of_a_run_is_read_once(bench: Bench) -> None:
    run = bench.service.a_run()
    assert [add(bench, run, rank) for rank in (2, 0, 1)] == [[2], [0], [1]]
    seen = bench.service.get(f"/runs/{run}/analysis").json()
    assert [r["rank"] for r in seen["ranks"]] == [0, 1, 2]
    assert seen["source"] == "r2.json, r0.json, r1.json"


def test_another_program_reads_them_again_and_keeps_that(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.service.a_run()
    add(bench, run, 0)
    monkeypatch.setattr(module, "_program", lambda: "newer")
    assert add(bench, run, 1) == [1, 0]
    assert add(bench, run, 2) == [2]


def families(bench: Bench, run: str) -> dict[int, set[str]]:
    """The families of the stored kernels by rank."""
    found: dict[int, set[str]] = {}
    for row in bench.service.get(f"/runs/{run}/kernels", params={"limit": 100}).json()["items"]:
        found.setdefault(row["rank"], set()).add(row["family"])
    return found


def test_rows_of_the_kernels_are_written_with_their_rank_and_then_left(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.service.a_run()
    add(bench, run, 0)

    async def mark() -> None:
        async with bench.database.write() as session:
            await session.execute(update(KernelRow).values(family="stored before"))

    bench.call(mark)
    add(bench, run, 1)
    assert families(bench, run) == {0: {"stored before"}, 1: {"elementwise"}}
    monkeypatch.setattr(module, "_program", lambda: "newer")
    add(bench, run, 2)
    assert families(bench, run) == {rank: {"elementwise"} for rank in (0, 1, 2)}


def test_what_reanalyze_finds_is_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = bench.service.a_run()
    add(bench, run, 0)
    monkeypatch.setattr(module, "_program", lambda: "newer")
    assert bench.call(lambda: reanalyze(run, bench.settings, bench.database, acting_child.analyzed)) == 1
    assert add(bench, run, 1) == [1]


def test_a_calibration_of_its_device_reads_a_rank_again(bench: Bench) -> None:
    run = bench.service.a_run()
    add(bench, run, 0)
    for device, want in (("A100", [1]), ("Tesla V100-DGXS-32GB", [2, 0, 1])):
        body = {"device": device, "kind": "gpu", "measured_at": "2026-01-01T00:00:00Z"}
        assert bench.service.post("/calibrations", json=body).status_code == 201
        assert add(bench, run, want[0]) == want


def test_a_run_that_came_rank_by_rank_is_the_run_that_came_at_once(bench: Bench, tmp_path: Path) -> None:
    """The third rank makes the second and first wait longer, and none is missing any more."""
    paths = [trace(tmp_path, rank, world=3) for rank in (1, 0, 2)]
    run = bench.service.a_run()
    for path in paths:
        sent = bench.service.post(
            f"/runs/{run}/traces", params={"filename": path.name}, content=path.read_bytes()
        )
        bench.claim("w")
        assert bench.do(sent.json()["job"]["id"], "w", analyzed) == "done"
    seen = bench.service.get(f"/runs/{run}/analysis").json()
    want = analyze_files(paths, jobs=1).document
    assert [c["wait_us"] for c in seen["collectives"]] == [{"0": 2, "1": 1, "2": 0}]
    assert [c["wait_us"] for c in seen["collectives"]] == [c.wait_us for c in want.collectives]
    for got, rank in zip(seen["ranks"], want.ranks, strict=True):
        assert (got["grade"], got["grade_reasons"]) == (rank.grade, rank.grade_reasons)
        assert [s["wait_us"] for s in got["steps"]] == [s.wait_us for s in rank.steps]
    assert seen["missing_ranks"] == []


def test_a_rank_that_comes_twice_is_refused_by_the_names_that_were_sent(bench: Bench) -> None:
    run = bench.service.a_run()
    add(bench, run, 0)
    job = send(bench.service, run, name="again.json", rank=0, other=1)
    bench.claim("w")
    assert bench.do(job, "w") == "refused"
    problem = bench.service.get(f"/jobs/{job}").json()["problem"]
    assert "r0.json" in problem["title"]
    assert "again.json" in problem["title"]


def test_what_is_kept_holds_for_the_calibrations_of_its_devices(tmp_path: Path) -> None:
    (path := tmp_path / "t.json").write_text("{}")
    result, _ = acting_child.analyzed(Trace(path, "t.json", tmp_path / "t.rooflight"), Limits(), [])
    body = keep(result, [V100])
    assert kept(body, [A100, V100]) is not None
    assert kept(body, [A100]) is None
    assert kept(None, []) is None
