"""``examples/train.py`` recorded by the launcher and by ``rooflight.record``: the same steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.shared import CHECKOUT

pytestmark = pytest.mark.torch

EXAMPLE = CHECKOUT / "examples/train.py"
WAIT, STEPS = 4, 3
#: The example within a recorder whose user says that a step ends where the optimizer's does.
RECORDED = f"""
import runpy, sys
import rooflight
_, out, *program = sys.argv
sys.argv = program
from torch.optim.optimizer import register_optimizer_step_post_hook
with rooflight.record(wait={WAIT}, active={STEPS}, out=out) as rec:
    register_optimizer_step_post_hook(lambda *_: rec.step())
    runpy.run_path(program[0], run_name="__main__")
assert rec.wait(120), rec.problem
"""


def rank(document: Path) -> dict[str, Any]:
    [found] = json.loads(document.read_bytes())["ranks"]
    return dict(found)


def work(recorded: dict[str, Any]) -> dict[tuple[Any, ...], tuple[int, float | None]]:
    """How often each op that computes ran on which inputs, and its FLOPs.  How often memory is asked for
    differs from one run of the program to the next: an op takes over its input's when nobody holds it."""
    rows = [r for r in recorded["cpu"]["ops"] if r["flops"]]
    return {(r["name"], str(r["input_dims"]), r["dtype"]): (r["count"], r["flops"]) for r in rows}


def run(*command: str, folder: Path) -> None:
    told = {"ROOFLIGHT_STATE": str(folder / "state"), "ROOFLIGHT_CONFIG": os.devnull, "OMP_NUM_THREADS": "1"}
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ROOFLIGHT_")} | told
    done = subprocess.run(
        [sys.executable, *command], env=environ, cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step 20  loss" in done.stdout


def test_launcher_and_recorder_record_the_same_steps(tmp_path: Path) -> None:
    program = (str(EXAMPLE), "--steps", "20", "--device", "cpu", "--batch", "2", "--length", "32")
    window = ("--wait", str(WAIT), "--steps", str(STEPS), "--no-push", "--out", str(tmp_path / "launched"))
    run("-m", "agent.cli", "run", *window, "--", sys.executable, *program, folder=tmp_path)
    run("-c", RECORDED, str(tmp_path / "recorded"), *program, folder=tmp_path)

    launched = rank(tmp_path / "launched/analysis.json")
    [document] = (tmp_path / "recorded").glob("*/analysis.json")
    recorded = rank(document)
    # Both wait 4, warm up in 2 and record 3.
    assert launched["n_steps"] == recorded["n_steps"] == STEPS
    assert [step["n"] for step in launched["steps"]] == [step["n"] for step in recorded["steps"]]
    assert work(launched) == work(recorded)
    # A linear map is a product forward, and two backward, of its input and of its weight.  There are 4 in
    # each of the 2 layers (query, key and value are one), and the head.
    products = [
        count for (name, *_), (count, _) in work(launched).items() if name in ("aten::mm", "aten::addmm")
    ]
    assert sum(products) == STEPS * 3 * (2 * 4 + 1)
