"""A CPU's measured roof judges the traces of its own host, and no other's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from app.blobs import BlobStore
from app.db import Database
from app.ingest.kept import fitting
from app.ingest.tasks import _gather, analyzed
from app.ingest.traces import Trace
from app.settings import Settings
from rooflight.calibration import Calibration
from rooflight.readers.source import Limits
from tests.app.conftest import Service


def measured(host: str | None, *, at: str = "2026-01-01T00:00:00Z", fp32: float = 0.5) -> Calibration:
    return Calibration(
        device="EPYC", kind="cpu", measured_at=at, host=host, gemm_tflops={"fp32": fp32},
        vector_tflops={"fp32": fp32}, stream_gbs=20.0,
    )  # fmt: skip


def a_trace(folder: Path, host: str | None) -> Trace:
    """One product of 256 x 256 matrices, 1 ms, on the CPU."""
    dims = {"Input Dims": [[256, 256], [256, 256]], "Input type": ["float", "float"]}
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 1000}
    trace: dict[str, Any] = {"schemaVersion": 1, "traceEvents": [event | {"args": dims}]}
    if host is not None:
        trace["host_name"] = host
    path = folder / f"{host}.json"
    path.write_text(json.dumps(trace))
    return Trace(path, path.name, folder / "stored.rooflight")


@pytest.mark.parametrize(
    ("host", "practical"), [("lab1", 0.5e12), ("lab2", 0.7e12), ("lab3", None), (None, None)]
)
def test_a_trace_is_judged_by_the_roof_of_its_host(
    tmp_path: Path, host: str | None, practical: float | None
) -> None:
    known = [measured("lab1"), measured("lab2", fp32=0.7), measured(None, fp32=9.0)]
    result, _ = analyzed(a_trace(tmp_path, host), Limits(), known)
    cpu = result.rank.cpu
    assert cpu is not None
    roof = cpu.roof.compute.get("fp32")
    assert (roof.practical if roof else None) == practical


def test_each_rank_is_judged_by_its_own_host() -> None:
    gpu = Calibration(device="V100", kind="gpu", measured_at="2026-01-01T00:00:00Z", host="lab1")
    known = [measured("lab1"), measured("lab2"), gpu]
    assert fitting(known, "lab2") == [known[1], gpu]
    assert fitting(known, None) == [gpu]


def test_each_host_keeps_its_newest(service: Service) -> None:
    """Two hosts with one model of CPU: the newer of the one must not hide the other's."""
    for host, at, fp32 in [
        ("lab1", "2026-01-01", 0.1),
        ("lab1", "2026-01-03", 0.3),
        ("lab2", "2026-01-04", 0.4),
    ]:
        body = {"device": "EPYC", "kind": "cpu", "measured_at": f"{at}T00:00:00Z", "host": host}
        assert service.post("/calibrations", json=body | {"gemm_tflops": {"fp32": fp32}}).status_code == 201
    run = service.a_run()
    sent = service.post(f"/runs/{run}/traces", params={"filename": "t.json"}, content=b"{}")
    gathered = asyncio.run(_gathered(service.settings, sent.json()["job"]["id"]))
    assert {(c.host, c.gemm_tflops["fp32"]) for c in gathered} == {("lab1", 0.3), ("lab2", 0.4)}


async def _gathered(settings: Settings, job: str) -> list[Calibration]:
    database = Database(settings.url, pooled=False)
    try:
        return (await _gather(job, database, BlobStore(settings.data))).calibrations
    finally:
        await database.close()
