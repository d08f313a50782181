"""A server that is killed loses nothing it has answered, and keeps nothing it has not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.app.conftest import a_postgres
from tests.e2e.conftest import Server, server_command, start_server

PATIENCE_S = 120


def kineto(kernels: int = 2) -> bytes:
    """A trace with ``kernels`` kernels of 50 µs, each 100 µs after the one before."""
    events: list[dict[str, Any]] = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": f"kernel_{i % 7}",
            "pid": 0,
            "tid": 7,
            "ts": 100 + 100 * i,
            "dur": 50,
            "args": {"device": 0, "stream": 7, "correlation": i + 1},
        }
        for i in range(kernels)
    ]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


class Client:
    """Speaks to one server with a token."""

    def __init__(self, server: Server, token: str) -> None:
        self.server, self.auth = server, {"Authorization": f"Bearer {token}"}

    def post(self, path: str, **kwargs: Any) -> dict[str, Any]:
        answer = httpx2.post(
            f"{self.server.url}/api/v1{path}", headers=self.auth, timeout=60, trust_env=False, **kwargs
        )
        assert answer.is_success, answer.text
        return dict(answer.json())

    def get(self, path: str) -> dict[str, Any]:
        answer = httpx2.get(f"{self.server.url}/api/v1{path}", timeout=60, trust_env=False)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def a_run(self) -> str:
        self.post("/projects", json={"name": "demo"})
        return str(self.post("/projects/demo/runs", json={})["id"])

    def send(self, run: str, trace: bytes) -> str:
        return str(self.post(f"/runs/{run}/traces?filename=t.json", content=trace)["job"]["id"])

    def wait(self, job: str, *states: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            seen = self.get(f"/jobs/{job}")
            if seen["state"] in states:
                return seen
            time.sleep(0.05)
        raise AssertionError(f"still {seen}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder whose servers use SQLite or a PostgreSQL database of their own."""
    if request.param == "sqlite":
        yield tmp_path
        return
    with a_postgres() as url:
        monkeypatch.setenv("ROOFLIGHT_DATABASE", url)
        command(tmp_path, "migrate")
        yield tmp_path


def command(data: Path, *args: str) -> str:
    environment = {**os.environ, "ROOFLIGHT_DATA": str(data)}
    done = subprocess.run(server_command(*args), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kill(server: Server) -> None:
    """The end without a goodbye."""
    server.process.send_signal(signal.SIGKILL)
    server.stop()


def test_killed_right_after_the_202_the_job_is_done_after_the_restart(place: Path) -> None:
    token = command(place, "token", "create")
    client = Client(start_server(place), token)
    run = client.a_run()
    job = client.send(run, kineto())
    kill(client.server)
    client = Client(start_server(place), token)
    try:
        seen = client.wait(job, "done", "failed", "refused")
        assert seen["state"] == "done", seen
        # 50 + 50 µs of kernels between 100 and 250 µs: busy 100, idle 50.
        device = client.get(f"/runs/{run}/analysis")["ranks"][0]["devices"]["0"]
        assert (device["span_us"], device["busy_us"], device["idle_us"]) == (150.0, 100.0, 50.0)
    finally:
        client.server.stop()


def test_killed_in_the_middle_of_a_job_its_child_ends_too_and_the_job_is_done_again(place: Path) -> None:
    token = command(place, "token", "create")
    client = Client(start_server(place), token)
    run = client.a_run()
    job = client.send(run, kineto(20_000))
    client.wait(job, "running")
    children = children_of(client.server.process.pid)
    assert children
    kill(client.server)
    until_gone(children)
    client = Client(start_server(place), token)
    try:
        seen = client.wait(job, "done", "failed", "refused")
        assert (seen["state"], seen["attempts"]) == ("done", 2), seen
        launches = client.get(f"/runs/{run}/launches?limit=1")
        assert launches["total"] == 20_000
    finally:
        client.server.stop()


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_upload_cut_off_half_way_leaves_nothing(tmp_path: Path, framing: str) -> None:
    token = command(tmp_path, "token", "create")
    client = Client(start_server(tmp_path), token)
    try:
        run = client.a_run()
        before = client.get("/runs?pending=true")
        cut_off(client.server, run, token, chunked=framing == "chunked")
        until_empty(tmp_path / "incoming")
        assert [f for f in (tmp_path / "blobs").rglob("*") if f.is_file()] == []
        assert client.get("/runs?pending=true") == before
        assert client.get(f"/runs/{run}")["state"] == "empty"
        assert client.wait(client.send(run, kineto()), "done", "failed", "refused")["state"] == "done"
    finally:
        client.server.stop()


def test_a_worker_apart_does_the_jobs_of_a_server_without_workers(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = command(place, "token", "create")
    monkeypatch.setenv("ROOFLIGHT_WORKERS", "0")
    client = Client(start_server(place), token)
    environment = {**os.environ, "ROOFLIGHT_DATA": str(place)}
    worker = subprocess.Popen(
        server_command("worker", "--workers", "1"),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        seen = client.wait(client.send(client.a_run(), kineto()), "done", "failed", "refused")
        assert seen["state"] == "done", seen
        worker.send_signal(signal.SIGTERM)
        out, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0, out
        assert b"Traceback" not in out
    finally:
        worker.kill()
        worker.communicate()
        client.server.stop()


def test_it_ends_in_order_when_asked_to(tmp_path: Path) -> None:
    server = start_server(tmp_path)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    server.stop()
    assert not any("Traceback" in line for line in server.lines)


def cut_off(server: Server, run: str, token: str, *, chunked: bool) -> None:
    """Announce 400 MB, send 8 MB of them, hang up."""
    address = urlsplit(server.url)
    framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 400000000"
    piece = b" " * 2**16
    with socket.create_connection((str(address.hostname), address.port or 80)) as link:
        link.sendall(
            f"POST /api/v1/runs/{run}/traces HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: Bearer {token}\r\n{framing}\r\n\r\n".encode()
        )
        for i in range(128):
            data = b"[" + piece[1:] if i == 0 else piece
            link.sendall(b"10000\r\n" + data + b"\r\n" if chunked else data)
        incoming = server.data / "incoming"
        end = time.monotonic() + PATIENCE_S
        while not any(incoming.iterdir()) and time.monotonic() < end:
            time.sleep(0.01)
        assert any(incoming.iterdir()), "the upload never began"


def until_empty(folder: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while any(folder.iterdir()):
        assert time.monotonic() < end, "the half upload is still there"
        time.sleep(0.05)


def children_of(pid: int) -> list[int]:
    """Processes whose parent is ``pid``."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def until_gone(pids: list[int]) -> None:
    end = time.monotonic() + PATIENCE_S
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end, "an analysis outlived its server"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
