"""Real torch training processes that know nothing of Rooflight, recorded while they run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main

TRAINING = """
import sys, time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
    open(sys.argv[1], "w").close()
    time.sleep(0.01)
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def sockets() -> Iterator[Path]:
    # The path of a socket has at most 107 bytes: a short name.
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def start(tmp_path: Path, sockets: Path) -> Iterator[Start]:
    """Start a training process as rank N and wait until it trains."""
    script, settings = tmp_path / "train.py", tmp_path / "libkineto.conf"
    script.write_text(TRAINING)
    # Asked every second, so that the test is not kept waiting; 5 s is Kineto's own.
    settings.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    running: list[subprocess.Popen[bytes]] = []

    def begin(rank: int) -> subprocess.Popen[bytes]:
        environ = os.environ | {
            "KINETO_USE_DAEMON": "1",
            "KINETO_IPC_SOCKET_DIR": str(sockets),
            "KINETO_CONFIG": str(settings),
            "KINETO_LOG_LEVEL": "6",
            "RANK": str(rank),
        }
        trains = tmp_path / f"trains{rank}"
        running.append(subprocess.Popen([sys.executable, str(script), str(trains)], env=environ))
        wait(trains.exists)
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()


def wait(for_what: Callable[[], Any], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not for_what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


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


def test_two_processes_become_two_ranks_of_exactly_the_iterations(
    tmp_path: Path, sockets: Path, start: Start
) -> None:
    first, second = start(0), start(1)
    status, [folder] = _capture(tmp_path / "state", sockets, "--iterations", "3", "--roundup", "10")
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


def test_a_timed_recording_lasts_as_long_as_ordered(tmp_path: Path, sockets: Path, start: Start) -> None:
    process = start(0)
    status, [folder] = _capture(
        tmp_path / "state", sockets, str(process.pid), "--duration-ms", "400", "--run", "x"
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
    tmp_path: Path, sockets: Path, start: Start
) -> None:
    process = start(0)
    command = [sys.executable, "-m", "agent.cli", "capture", "--iterations", "1000", "--no-push"]
    environ = os.environ | {"ROOFLIGHT_STATE": str(tmp_path / "killed")}
    agent = subprocess.Popen([*command, "--socket-dir", str(sockets)], env=environ)
    wait((sockets / "dynolog").is_socket)
    time.sleep(1.5)
    agent.send_signal(signal.SIGKILL)
    agent.wait()
    assert process.poll() is None
    # It has the dead agent's order of 1,000 iterations, some 12 s of them, perhaps: until then it is busy.
    wait(lambda: _capture(tmp_path / "state", sockets, str(process.pid), "--iterations", "2")[0] == 0)
    assert process.poll() is None


def test_a_vanished_process_is_named(
    tmp_path: Path, sockets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell = [sys.executable, "-c", "import os; print(os.getpid())"]
    pid = subprocess.run(tell, capture_output=True, check=True, text=True).stdout.strip()
    status, _ = _capture(tmp_path / "state", sockets, pid)
    assert status == 2
    assert f"process {pid}: no such process" in capsys.readouterr().err
