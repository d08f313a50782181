"""Eight agents after an outage, against the service as it is served: everything arrives, once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from agent.config import Config
from agent.delivery import Delivery
from agent.pushes import telemetry
from agent.sender import ServerSender
from agent.spool import Spool
from rooflight.retry import Retry
from tests.e2e.conftest import Server

AGENTS, BATCHES, WINDOWS = 8, 20, 3
T0 = 1_764_500_000


def outage(folder: Path, number: int) -> Spool:
    """What an agent kept: every batch has windows of a device of its own and of none other."""
    spool = Spool(folder, limit_bytes=1 << 20, note=lambda _: None)
    for batch in range(BATCHES):
        starts = [T0 + 10 * (batch * WINDOWS + i) for i in range(WINDOWS)]
        rows = [{"uuid": f"GPU-outage-{number}", "t_start": t, "t_end": t + 10} for t in starts]
        assert spool.put("telemetry", telemetry(rows, host=f"outage-{number}"), f"o{number}-{batch}")
    return spool


def deliver(spool: Spool, server: Server, token: str) -> None:
    sender = ServerSender(lambda: Config(server.url, token, "default", spool.folder))
    retry = Retry(tries=1_000, base_s=0.01, cap_s=0.2)
    delivery = Delivery(spool, sender, lambda _: None, retry=retry)
    until = time.monotonic() + 60
    while len(spool) and time.monotonic() < until:
        time.sleep(min(0.2, delivery.step(time.monotonic())))


def test_eight_agents_after_an_outage(tmp_path: Path, server: Server, token: str) -> None:
    spools = [outage(tmp_path / str(n), n) for n in range(AGENTS)]
    begin = threading.Barrier(AGENTS)

    def agent(spool: Spool) -> None:
        begin.wait()
        deliver(spool, server, token)

    with ThreadPoolExecutor(AGENTS) as pool:
        list(pool.map(agent, spools))
    assert [len(spool) for spool in spools] == [0] * AGENTS
    assert not any(spool.quarantined.names() for spool in spools)

    def get(path: str, **params: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx2.get(f"{server.url}/api/v1{path}", params=params, headers=headers, trust_env=False)
        return answer.json()

    for number in range(AGENTS):
        rows = get(f"/devices/GPU-outage-{number}/telemetry")["items"]
        assert len(rows) == BATCHES * WINDOWS
        [device] = get("/devices", host=f"outage-{number}")["items"]
        assert device["flags"] == [], "all of this machine's clock"
