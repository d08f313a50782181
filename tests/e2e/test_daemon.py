"""The daemon beside real training processes and a real server: an order over HTTP becomes a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.training import Host, a_host, a_vanished_pid, wait_until

pytestmark = pytest.mark.torch

#: An order becomes an analysed run within 30 s; on two busy cores the whole may take longer.
SECONDS = 30.0 if os.environ.get("ROOFLIGHT_QUIET_MACHINE") else 120.0


@dataclass
class Service:
    """The server's API, asked with a token."""

    url: str
    token: str

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def order(self, **order: Any) -> str:
        body = {"host": "testhost", "project": "daemon", **order}
        return str(self.ask("POST", "/captures", body)["id"])

    def over(self, capture: str) -> dict[str, Any]:
        """The capture once it is done or failed."""

        def look() -> dict[str, Any] | None:
            seen: dict[str, Any] = self.ask("GET", f"/captures/{capture}")
            return seen if seen["state"] in ("done", "failed") else None

        found: dict[str, Any] = wait_until(look, SECONDS)
        return found

    def ranks(self, run: str) -> list[dict[str, Any]]:
        ranks: list[dict[str, Any]] = self.ask("GET", f"/runs/{run}/analysis")["ranks"]
        return ranks


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as made:
        yield made


@pytest.fixture
def service(server: Server, token: str) -> Service:
    found = Service(server.url, token)
    found.ask("POST", "/projects", {"name": "daemon"})
    return found


def start_agent(host: Host, service: Service) -> subprocess.Popen[bytes]:
    """Start the daemon and wait until it answers."""
    environ = os.environ | {
        "ROOFLIGHT_SERVER": service.url,
        "ROOFLIGHT_TOKEN": service.token,
        "ROOFLIGHT_STATE": str(host.folder / "state"),
        "ROOFLIGHT_HOST": "testhost",
        "ROOFLIGHT_CONFIG": str(host.folder / "none.toml"),
    }
    command = [sys.executable, "-m", "agent.cli", "daemon", "--socket-dir", str(host.sockets)]
    before = _made(host)
    agent = subprocess.Popen(command, env=environ)
    host.running.append(agent)
    wait_until(lambda: _made(host) not in (None, before))
    return agent


def _made(host: Host) -> int | None:
    """When the socket was made; later when another daemon has made it anew."""
    path = host.sockets / "dynolog"
    return path.stat().st_ctime_ns if path.exists() else None


def test_orders_become_runs_of_their_ranks(host: Host, service: Service) -> None:
    processes = [host.start(0), host.start(1)]
    agent = start_agent(host, service)
    time.sleep(2)

    counted = service.over(service.order(iterations=3, roundup=10, run="three steps"))
    assert counted["state"] == "done", counted["problem"]
    assert {p["pid"] for p in counted["processes"]} == {p.pid for p in processes}
    ranks = service.ranks(counted["run_id"])
    assert [(r["rank"], len(r["inferred_steps"])) for r in ranks] == [(0, 3), (1, 3)]

    timed = service.over(service.order(duration_ms=300, pids=[processes[1].pid]))
    assert timed["state"] == "done", timed["problem"]
    [rank] = service.ranks(timed["run_id"])
    assert rank["rank"] == 1

    gone = a_vanished_pid()
    failed = service.over(service.order(duration_ms=300, pids=[gone]))
    assert failed["state"] == "failed"
    assert f"process {gone}: no such process" in failed["problem"]

    agent.send_signal(signal.SIGTERM)
    assert agent.wait(30) == 0
    assert not (host.sockets / "dynolog").exists()
    assert [p.poll() for p in processes] == [None, None]


def test_a_killed_daemon_leaves_the_training_running_and_captures_again(host: Host, service: Service) -> None:
    process = host.start(0)
    agent = start_agent(host, service)
    agent.kill()
    agent.wait()
    time.sleep(1)
    assert process.poll() is None
    assert (host.sockets / "dynolog").is_socket()  # what it left behind

    start_agent(host, service)
    capture = service.over(service.order(iterations=2, pids=[process.pid]))
    assert capture["state"] == "done", capture["problem"]
    assert len(service.ranks(capture["run_id"])[0]["inferred_steps"]) == 2
    assert process.poll() is None
