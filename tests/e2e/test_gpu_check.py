"""``scripts/gpu_check.sh`` without a GPU: all of its road, and what it asks of the driver's tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import CHECKOUT


@pytest.mark.slow
@pytest.mark.torch
def test_the_dry_run_does_all_of_it(tmp_path: Path) -> None:
    asked, out = tmp_path / "asked", tmp_path / "out"
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    tool.chmod(0o755)
    environ = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "ROOFLIGHT_PYTHON": sys.executable,
        "OMP_NUM_THREADS": "1",
    }
    command = [CHECKOUT / "scripts/gpu_check.sh", out, "--device", "cpu"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert asked.read_text().splitlines() == ["-q"], "settings are read, never changed"

    summary = json.loads((out / "summary.json").read_text())
    assert summary["good"] is True
    checks = [(row["check"], row["problem"]) for row in summary["checks"]]
    names = ("software", "calibrate", "workload", "launched", "sampled", "captured", "training")
    assert checks == [(name, None) for name in names]
    # Small enough to become test data.
    assert sum(path.stat().st_size for path in out.rglob("*")) == pytest.approx(summary["bytes"], abs=4096)
    assert summary["bytes"] < 10e6
    recorded = {path.parent.name for path in out.rglob("*.pt.trace.json.gz")}
    assert recorded == {"workload", "launched", "iterations", "duration"}
    assert "rooflight_agent_samples_total" in (out / "metrics.txt").read_text()
