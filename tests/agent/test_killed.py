"""An agent that is killed at any moment loses nothing that it acknowledged, and sends nothing twice."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.spool import Spool
from tests.agent.servers import FakeServer, Seen, running
from tests.shared import CHECKOUT, rounds


class Counting:
    """A server that counts a key once, as ours does, and loses the answer of every seventh request."""

    def __init__(self) -> None:
        self.by_key: dict[str, str] = {}
        self.requests = 0

    def __call__(self, request: Seen) -> tuple[int, dict[str, object]]:
        self.requests += 1
        body = json.loads(gzip.decompress(request.body))
        rows = json.dumps(body["windows"])
        key = request.headers["idempotency-key"]
        assert self.by_key.setdefault(key, rows) == rows, "one key, one body"
        return (503, {}) if self.requests % 7 == 0 else (201, {"added": 1, "dropped": {}})

    @property
    def numbers(self) -> list[int]:
        """Every row that came, once for each key that it came under."""
        return sorted(int(row["t_start"]) for rows in self.by_key.values() for row in json.loads(rows))


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    chance, folder, server = random.Random(7), tmp_path / "spool", Counting()
    put: list[int] = []
    notes: list[str] = []
    with running(FakeServer(server)) as fake:
        for _ in range(rounds(12, 50)):
            first = max(put, default=0) + 1000  # beyond whatever it may have put without a word
            command = [sys.executable, "-m", "tests.agent.filler", str(folder), fake.url, str(first)]
            with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as agent:
                assert agent.stdout is not None
                lines = [agent.stdout.readline()]  # it runs
                time.sleep(chance.uniform(0, 0.15))
                agent.kill()
                lines += agent.stdout.readlines()
            put += [int(line.split()[1]) for line in lines if line.startswith("put ") and line.endswith("\n")]
            notes += [line for line in lines if line.startswith("note ") and "503" not in line]
        spool = Spool(folder, limit_bytes=1 << 20, note=notes.append)
        waiting = [json.loads(batch.body())["windows"] for batch in spool.batches()]
        spool.close()
    there = server.numbers
    left = {int(window["t_start"]) for windows in waiting for window in windows}
    assert len(put) > 30
    assert notes == [], "no file was broken"
    assert not (folder / "quarantine").exists()
    assert set(put) <= set(there) | left, "nothing acknowledged is lost"
    assert len(there) == len(set(there)), "nothing is there twice"
    assert set(spool.dropped().values()) == {0}
