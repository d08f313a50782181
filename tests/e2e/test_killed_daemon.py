"""The whole daemon, killed at any moment while it samples and delivers to the service as it is served."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.batch import Address
from agent.spool import Batch, Spool
from rooflight.protocol import encode
from tests.agent.nvml_stub import compile_stub
from tests.agent.test_nvml import OTHER, UUID, a_gpu, a_host
from tests.e2e.conftest import Server
from tests.factories import a_document
from tests.shared import CHECKOUT, rounds
from tests.training import wait_until

PROJECT = "killed"


@dataclass
class Agent:
    """A daemon over one state folder, started over and over; ``windows`` and ``runs`` are what its spool was
    seen to hold, which is what it answers for."""

    folder: Path
    server: Server
    token: str
    windows: set[tuple[str, int]] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def start(self) -> subprocess.Popen[str]:
        environ = os.environ | {
            "LD_LIBRARY_PATH": str(self.folder),
            "ROOFLIGHT_NVML_SCENARIO": str(self.folder / "scenario"),
            "ROOFLIGHT_CONFIG": os.devnull,
            "ROOFLIGHT_STATE": str(self.folder / "state"),
            "ROOFLIGHT_SERVER": self.server.url,
            "ROOFLIGHT_TOKEN": self.token,
            "ROOFLIGHT_INTERVAL_S": "0.1",
            "ROOFLIGHT_WINDOW_S": "0.1",
            "ROOFLIGHT_HOST": "gpu-7",
        }
        command = [sys.executable, "-m", "agent.cli", "daemon"]
        return subprocess.Popen(command, cwd=CHECKOUT, env=environ, stderr=subprocess.PIPE, text=True)

    def run_until_killed(self, after_s: float, *, ready: bool) -> None:
        """Kill it ``after_s`` after its start, or after its loops run."""
        with self.start() as daemon:
            assert daemon.stderr
            if ready:
                assert any("runs on gpu-7" in line for line in daemon.stderr)
            time.sleep(after_s)
            daemon.kill()
            lines = daemon.stderr.readlines()
        self.notes += [
            line for line in lines if any(word in line for word in ("failed", "corrupt", "dropped"))
        ]

    def look(self, run: str) -> None:
        """See what the last process left, and put a profile for the next one."""
        spool = self.spool()
        for batch in spool.batches():
            if batch.kind == "telemetry":
                self.windows |= set(_windows(batch))
        document = encode(a_document(kernels=2, steps=1))
        assert spool.put("profile", document, f"key-{run}", address=Address(project=PROJECT, run=run))
        self.runs.add(run)
        spool.close()

    def spool(self) -> Spool:
        folder = self.folder / "state" / "spool"
        return Spool(folder, note=self.notes.append)

    def get(self, path: str) -> Iterator[Any]:
        """All items of a list, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            query = urllib.parse.urlencode({"limit": 200} | ({"cursor": cursor} if cursor else {}))
            request = urllib.request.Request(
                f"{self.server.url}/api/v1{path}?{query}", headers={"Authorization": f"Bearer {self.token}"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                page = json.loads(answer.read())
            yield from page["items"]
            cursor = page["next_cursor"]


def _windows(batch: Batch) -> Iterator[tuple[str, int]]:
    """Device and start of each, µs as the service keeps them."""
    for row in json.loads(batch.body())["windows"]:
        yield row["uuid"], round(1e6 * row["t_start"])


def _us(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.slow
@pytest.mark.compiler
def test_killed_at_random_moments(tmp_path: Path, server: Server, token: str) -> None:
    chance, agent = random.Random(11), Agent(tmp_path, server, token)
    compile_stub(tmp_path)
    (tmp_path / "scenario").write_text(a_host(a_gpu(0, UUID), a_gpu(1, OTHER)))
    (tmp_path / "state").mkdir()
    for number in range(rounds(12, 50)):
        agent.look(f"run {number}")
        # Every fourth does not get to the end of its start.
        agent.run_until_killed(chance.uniform(0, 0.6), ready=number % 4 != 3)
    agent.look("the last run")
    with agent.start() as daemon:
        wait_until(lambda: not list((tmp_path / "state/spool").glob("*-profile.batch")))
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(30) == 0

    spool = agent.spool()
    waiting = [window for batch in spool.batches() for window in _windows(batch)]
    assert agent.notes == [], "no file was broken"
    assert spool.quarantined.names() == []
    assert set(spool.dropped().values()) == {0}
    spool.close()
    runs = [run["name"] for run in agent.get("/runs") if run["project"] == PROJECT]
    assert sorted(runs) == sorted(agent.runs), "each profile is there, once"
    there = [
        (uuid, _us(row["t_start"]))
        for uuid in (UUID, OTHER)
        for row in agent.get(f"/devices/{uuid}/telemetry")
    ]
    assert len(agent.windows) > 10
    assert agent.windows <= set(there) | set(waiting), "nothing that was on disk is lost"
    assert len(there) == len(set(there)), "nothing is there twice"
