"""Programs that know nothing of Rooflight, started so that they record a window of their steps."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

AGENT = [sys.executable, "-m", "agent.cli", "run"]

TRAINING = """
import sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
print("weights", model.weight.sum().item())
"""


@dataclass
class Bench:
    """A folder with a script, started with the agent or without."""

    folder: Path

    def script(self, text: str) -> str:
        path = self.folder / "train.py"
        path.write_text(text)
        return str(path)

    def run(self, *command: str, agent: tuple[str, ...] | None = ("--no-push",), **environ: str) -> Any:
        before = [*AGENT, *agent, "--out", str(self.out), "--"] if agent is not None else []
        env = os.environ | {"ROOFLIGHT_STATE": str(self.folder / "state")} | environ
        return subprocess.run([*before, *command], capture_output=True, text=True, env=env, check=False)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def ranks(self) -> list[dict[str, Any]]:
        ranks: list[dict[str, Any]] = json.loads((self.out / "analysis.json").read_bytes())["ranks"]
        return ranks


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_window_has_its_steps_and_the_program_its_own_output(bench: Bench) -> None:
    script = bench.script(TRAINING)
    plain = bench.run(sys.executable, script, "20", agent=None)
    ours = bench.run(sys.executable, script, "20", agent=("--no-push", "--steps", "4", "--wait", "3"))
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.stdout.startswith("weights")
    # 3 steps wait, 2 warm up: 4 of the remaining 15 are recorded.
    [rank] = bench.ranks()
    assert rank["n_steps"] == 4
    assert all(line.startswith("rooflight-agent: ") for line in ours.stderr.splitlines())


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("raise SystemExit(7)", 7),
        ("raise RuntimeError('no')", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),  # 128 + 15
    ],
)
def test_the_exit_status_is_the_programs(bench: Bench, ending: str, status: int) -> None:
    assert bench.run(sys.executable, bench.script(ending)).returncode == status


def test_a_server_that_is_down_changes_nothing(bench: Bench) -> None:
    script = bench.script(TRAINING + "raise SystemExit(5)")
    down = ("--server", "http://127.0.0.1:9", "--wait", "0", "--steps", "1")
    ended = bench.run(sys.executable, script, "6", agent=down)
    assert ended.returncode == 5
    assert ended.stdout.startswith("weights")
    assert "not sent" in ended.stderr
    assert "rooflight-agent push" in ended.stderr


def test_a_program_that_ends_within_the_window_leaves_what_it_recorded(bench: Bench) -> None:
    # 1 step waits, 1 warms up; of 5 to be recorded 3 happen: the program takes 5 steps.
    script = bench.script(TRAINING)
    ended = bench.run(
        sys.executable, script, "5", agent=("--no-push", "--wait", "1", "--warmup", "1", "--steps", "5")
    )
    assert ended.returncode == 0
    assert bench.ranks()[0]["n_steps"] in (3, 4)  # the one that was cut short is marked too


def test_too_few_steps_are_said(bench: Bench) -> None:
    ended = bench.run(sys.executable, bench.script(TRAINING), "3")
    assert ended.returncode == 0
    assert "no process recorded a step" in ended.stderr


def test_another_sitecustomize_runs_all_the_same(bench: Bench) -> None:
    theirs = bench.folder / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import builtins; builtins.theirs = 42\n")
    script = bench.script(
        "import sys\nprint(theirs, sys.modules['sitecustomize'].__file__)\n"
        "print([p for p in sys.path if 'inject' in p])\n"
    )
    plain = bench.run(sys.executable, script, agent=None, PYTHONPATH=str(theirs))
    ours = bench.run(sys.executable, script, PYTHONPATH=str(theirs))
    assert plain.stdout == ours.stdout == f"42 {theirs / 'sitecustomize.py'}\n[]\n"


def test_two_ranks_of_torchrun_are_ranks_of_one_run(bench: Bench) -> None:
    script = bench.script(f"import torch.distributed as d\nd.init_process_group('gloo')\n{TRAINING}")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = bench.run(*launcher, script, "20", OMP_NUM_THREADS="1")
    assert ended.returncode == 0, ended.stderr
    assert [(rank["rank"], rank["n_steps"]) for rank in bench.ranks()] == [(0, 5), (1, 5)]


def test_what_a_step_holds_is_told_with_it(bench: Bench) -> None:
    units = ("--no-push", "--units", "tokens=32")
    assert bench.run(sys.executable, bench.script(TRAINING), "20", agent=units).returncode == 0
    assert json.loads((bench.out / "analysis.json").read_bytes())["units_per_step"] == {"tokens": 32}
    ended = bench.run(sys.executable, bench.script(TRAINING), "20", agent=("--no-push", "--units", "tokens"))
    assert (ended.returncode, ended.stdout) == (2, "")


def test_of_two_optimizers_the_first_counts(bench: Bench) -> None:
    script = bench.script(
        TRAINING.replace("for _", "second = torch.optim.SGD(model.parameters(), lr=0.01)\nfor _").replace(
            "    optimizer.step()", "    optimizer.step()\n    second.step()"
        )
    )
    bench.run(sys.executable, script, "30")
    trace = next(bench.out.glob("*.pt.trace.json.gz"))
    names = [e.get("name") for e in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]]
    steps = [name for name in names if name and name.startswith("ProfilerStep#")]
    assert len(steps) == 5
    # Each of the five holds a step of either: ten in all, and the rest of the one in which the window opened.
    assert 10 <= names.count("Optimizer.step#SGD.step") <= 11


def test_a_program_that_profiles_itself_keeps_its_recording_and_the_window_waits(bench: Bench) -> None:
    """Of 30 steps the program records the first 20; the window would have opened after 10."""
    script = bench.script(
        TRAINING.replace("for _", "mine = torch.profiler.profile()\nmine.start()\nfor n").replace(
            "    optimizer.step()", "    optimizer.step()\n    if n == 19: mine.stop()"
        )
        + "print(sum(e.name == 'Optimizer.step#SGD.step' for e in mine.events()))\n"
    )
    ended = bench.run(sys.executable, script, "30")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1] == "20"
    assert bench.ranks()[0]["n_steps"] == 5


def test_a_program_without_torch_is_not_touched(bench: Bench) -> None:
    script = bench.script("import sys; print('torch' in sys.modules, 'rooflight_window' in sys.modules)")
    assert bench.run(sys.executable, script).stdout == "False False\n"


def test_what_cannot_be_started_is_named(bench: Bench) -> None:
    ended = bench.run("/no/such/program")
    assert ended.returncode == 2
    assert "/no/such/program" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_workload_and_a_command_are_two_things(bench: Bench) -> None:
    ended = bench.run("true", agent=("--workload", "gemm", "--no-push"))
    assert ended.returncode == 2
    assert "two things" in ended.stderr
