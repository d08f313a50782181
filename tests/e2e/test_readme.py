"""What the README tells to type for a CI job works as it stands, against a real server."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.shared import CHECKOUT

KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
TRACE = {"traceEvents": [KERNEL | {"args": {"device": 0, "context": 1, "stream": 7, "correlation": 1}}]}


def shell_blocks() -> list[str]:
    """The shell of the section on CI jobs: the way by program, the way by curl."""
    section = (CHECKOUT / "README.md").read_text().partition("## From a CI job")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.mark.parametrize("way", [0, pytest.param(1, marks=pytest.mark.curl)], ids=["program", "curl"])
def test_the_way_of_a_ci_job(way: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    service, demo = importlib.import_module("service"), importlib.import_module("demo")
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    subprocess.run(["gzip", "trace.json"], cwd=tmp_path, check=True)
    with service.serving(tmp_path / "data", 0) as running:
        # The address is the test's own; all else is run as it is written, in the shell that CI uses.
        text = re.sub(r"export ROOFLIGHT_SERVER=\S+.*\n", "", shell_blocks()[way])
        env = service.environment(tmp_path) | {
            "PATH": f"{service.BIN}:{os.environ['PATH']}",
            "ROOFLIGHT_SERVER": running.url,
            "ROOFLIGHT_TOKEN": demo.demo_token(running),
            "CI_COMMIT_SHA": "0a1b2c3d",
            "CI_JOB_ID": "77",
        }
        done = subprocess.run(["sh", "-euc", text], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        run = wait_for_the_run(running)
        assert run["name"] == "0a1b2c3d"
        assert run["project"] == "vision"
        analysis = running.get(f"/api/v1/runs/{run['id']}/analysis").json
        assert analysis["ranks"][0]["devices"]["0"]["busy_us"] == 2.0
        if way == 1:
            assert json.loads((tmp_path / "analysis.json").read_text()) == analysis


def wait_for_the_run(running: object) -> dict[str, str]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        items = running.get("/api/v1/runs").json["items"]  # type: ignore[attr-defined]
        if items:
            return dict(items[0])
        time.sleep(0.2)
    raise AssertionError("no run was listed within 60 s")
