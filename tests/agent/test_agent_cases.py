"""Case 96: a full spool, a full disk, a wrong clock.  What a request for a missing process is answered with
is in :mod:`tests.agent.test_capture_coordinator`; what the server makes of the clock, in
:mod:`tests.app.test_telemetry`.  Case 95 is in :mod:`tests.agent.test_delivery`."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import pytest

import agent.spool
import agent.tally
from agent.batch import Address
from agent.store import replace
from tests.agent.simulated import Answer, Asked, World
from tests.cases import load, load_input

CASE = "96-full-disk-and-wrong-clock"
EXPECT = load(CASE)["expect"]
GIVEN = load_input(CASE)


TRACE = "trace1"


def body_of(item: dict[str, Any]) -> bytes:
    """What is put for an item: exactly as many bytes as the case says."""
    rows = [{"uuid": "GPU-1", "t": item["t"], "util_pct": 1}]
    text = json.dumps({"samples": rows} if item["kind"] == "telemetry" else {"traceEvents": []})
    return text.encode().ljust(item["bytes"])


def played(folder: Path) -> tuple[World, list[Asked]]:
    """The outage, then the server's return; what the server got then."""
    got: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        if world.now < 3600:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        if asked.method == "GET":
            return 200, {"offset": 0}  # nothing of the trace is here: its only part follows
        part = asked.method == "PUT"
        # A part is named by its content, as the queue names it by its key.
        got.append(replaced(asked, key=TRACE) if part else asked)
        return (202, {"offset": 4000, "job": {"id": "j"}}) if part else (201, {"added": 1})

    world = World(folder, answer, lambda: 1.0, limit_bytes=GIVEN["spool_limit_bytes"])
    # The host's clock is 90 s ahead of the simulated server's, which is world.epoch + world.now.
    world.epoch += EXPECT["clock_skew_s"]
    for item in GIVEN["items"]:
        world.spool.put(item["kind"], body_of(item), item["id"], address=Address(run_id="r"))
        world.run(world.now + 10)
        assert world.spool.bytes <= GIVEN["spool_limit_bytes"]
    return world, got


def test_case_96(tmp_path: Path) -> None:
    world, got = played(tmp_path)
    assert [batch.key for batch in world.spool.batches()] == EXPECT["spool_after"]
    world.crash()  # what waits and what was dropped survives
    assert [batch.key for batch in world.spool.batches()] == EXPECT["spool_after"]
    world.run(4500)
    assert [asked.key for asked in got] == EXPECT["spool_after"]
    told = [asked.told["dropped"] for asked in got if asked.target == "/telemetry"]
    assert {kind: told[0][kind] for kind in EXPECT["dropped_reported"]} == EXPECT["dropped_reported"]
    assert {n for later in told[1:] for n in later.values()} == {0}, "told once"
    sent = got[0].told
    server_epoch = world.epoch - EXPECT["clock_skew_s"]
    assert server_epoch + got[0].t - sent["agent_time"] == pytest.approx(-EXPECT["clock_skew_s"])
    assert sent["samples"][0]["t"] == 1_764_500_050, "t05 by the host's own clock"


def test_case_96_on_a_disk_that_is_full_at_every_second_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alive, bounded, and every batch is delivered or counted."""
    writes = 0

    def full(path: Path, chunks: Any) -> None:
        nonlocal writes
        writes += 1
        if writes % 2 == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(path, chunks)

    monkeypatch.setattr(agent.spool, "replace", full)
    monkeypatch.setattr(agent.tally, "replace", full)
    world, got = played(tmp_path)
    world.run(4500)
    assert len(world.spool) == 0
    told = [asked.told["dropped"] for asked in got if asked.target == "/telemetry"]
    items = [item["kind"] for item in GIVEN["items"]]
    for kind in ("telemetry", "trace"):
        delivered = sum(asked.target.startswith(f"/{'runs' if kind == 'trace' else kind}") for asked in got)
        assert delivered + told[0][kind] == items.count(kind)
    assert told[0]["telemetry"] > 0
    assert set(world.spool.dropped().values()) == {0}
