"""The agent is light to install, to start, and while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.shared import CHECKOUT
from tests.test_imports import HEAVY

IMPORTS = """
import time
began = time.process_time()
import agent.cli, agent.commands.daemon
print(time.process_time() - began)
"""


def test_the_extra_brings_the_binding_of_nvml_and_nothing_else() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert [need.partition(">")[0] for need in project["optional-dependencies"]["agent"]] == ["nvidia-ml-py"]


def test_the_daemon_starts_at_once() -> None:
    def seconds() -> float:
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS], cwd=CHECKOUT, capture_output=True, check=True, text=True
        )
        return float(done.stdout)

    # CPU time, the best of five: what the machine's other work adds is not the program's.
    assert min(seconds() for _ in range(5)) < 0.3


def test_a_running_daemon_has_loaded_no_heavy_library(tmp_path: Path) -> None:
    environ = os.environ | {
        "ROOFLIGHT_STATE": str(tmp_path / "state"),
        "ROOFLIGHT_CONFIG": str(tmp_path / "none.toml"),
        "ROOFLIGHT_METRICS": "0",
        "ROOFLIGHT_SERVER": "http://127.0.0.1:9",
    }
    command = [sys.executable, "-X", "importtime", "-m", "agent.cli", "daemon", "--interval-s", "0.1"]
    with subprocess.Popen(command, cwd=CHECKOUT, env=environ, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr
        lines: list[str] = []
        for line in daemon.stderr:
            lines.append(line)
            if "rooflight-agent: runs on" in line:
                daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(30) == 0
    names = {
        line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines if line.startswith("import time:")
    }
    assert "agent" in names
    assert not names & (HEAVY - {"msgspec"}) | names & {"httpx2", "asyncio", "multiprocessing"}
