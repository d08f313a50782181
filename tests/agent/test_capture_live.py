"""Real torch training processes that know nothing of Rooflight, recorded while they run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from tests.training import Host, a_host, a_vanished_pid, wait_until

pytestmark = pytest.mark.torch


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as made:
        yield made


def _capture(state: Path, sockets: Path, *args: str) -> tuple[int, list[Path]]:
    before = set((state / "captures").glob("*"))
    os.environ["ROOFLIGHT_STATE"] = str(state)
    try:
        status = main(["capture", *args, "--socket-dir", str(sockets), "--no-push"])
    finally:
        del os.environ["ROOFLIGHT_STATE"]
    return status, sorted(set((state / "captures").glob("*")) - before)


def _analysis(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "analysis.json").read_bytes())
    return document


def test_two_processes_become_two_ranks_of_exactly_the_iterations(tmp_path: Path, host: Host) -> None:
    first, second = host.start(0), host.start(1)
    status, [folder] = _capture(tmp_path / "state", host.sockets, "--iterations", "3", "--roundup", "10")
    assert status == 0
    for process in (first, second):
        trace = json.loads((folder / f"{process.pid}.pt.trace.json").read_bytes())
        names = [event.get("name", "") for event in trace["traceEvents"]]
        assert names.count("Optimizer.step#SGD.step") == 3
    ranks = _analysis(folder)["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert [len(rank["inferred_steps"]) for rank in ranks] == [3, 3]
    assert first.poll() is None
    assert second.poll() is None


def test_a_timed_recording_lasts_as_long_as_ordered(tmp_path: Path, host: Host) -> None:
    process = host.start(0)
    status, [folder] = _capture(
        tmp_path / "state", host.sockets, str(process.pid), "--duration-ms", "400", "--run", "x"
    )
    assert status == 0
    events = json.loads((folder / f"{process.pid}.pt.trace.json").read_bytes())["traceEvents"]
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    span_us = max(e["ts"] + e["dur"] for e in ops) - min(e["ts"] for e in ops)
    # A training step of some 12 ms may be cut at either end; Kineto looks at the clock in steps of its own.
    assert 300_000 <= span_us <= 700_000
    assert any("Input Dims" in event["args"] for event in ops)
    assert _analysis(folder)["ranks"][0]["inferred_steps"]


def test_a_killed_agent_leaves_the_training_running_and_the_next_one_captures(
    tmp_path: Path, host: Host
) -> None:
    process = host.start(0)
    command = [sys.executable, "-m", "agent.cli", "capture", "--iterations", "1000", "--no-push"]
    environ = os.environ | {"ROOFLIGHT_STATE": str(tmp_path / "killed")}
    agent = subprocess.Popen([*command, "--socket-dir", str(host.sockets)], env=environ)
    wait_until((host.sockets / "dynolog").is_socket)
    time.sleep(1.5)
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    assert process.poll() is None
    # It has the dead agent's order of 1,000 iterations, some 12 s of them, perhaps: until then it is busy.
    wait_until(
        lambda: _capture(tmp_path / "state", host.sockets, str(process.pid), "--iterations", "2")[0] == 0
    )
    assert process.poll() is None


def test_a_vanished_process_is_named(tmp_path: Path, host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    pid = a_vanished_pid()
    status, _ = _capture(tmp_path / "state", host.sockets, str(pid))
    assert status == 2
    assert f"process {pid}: no such process" in capsys.readouterr().err
