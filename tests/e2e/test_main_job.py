"""The main job, as a person starts it: calibrate, run a workload, push, look at its page."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.shared import CHECKOUT


@pytest.mark.slow
@pytest.mark.torch
def test_the_main_job_end_to_end(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("ROOFLIGHT_")}
    command = [CHECKOUT / "scripts/demo", "--check", "--data", tmp_path / "data", "--port", "0"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("device", "step time", "regime", "quality", "biggest", "page", "check"):
        assert re.search(rf"^{line}  ", done.stdout, re.MULTILINE), done.stdout
