"""``rooflight.record`` in a real training: the window that it records, and all that it must leave alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rooflight
from rooflight import recorder
from rooflight.client import Rejected
from rooflight.handover import Order, sent
from rooflight.protocol import Document
from rooflight.recorder import KEPT
from rooflight.retry import Retry
from tests.agent.servers import FakeServer, Seen, accepts, running
from tests.factories import a_document

TOKEN = "rfl_a_secret_of_forty_characters"

LOOP = """
import sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def train(steps, after=lambda: None):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        after()
    print("weights", model.weight.sum().item(), flush=True)
"""
PLAIN = f"{LOOP}\ntrain(20)\n"
RECORDED = f"""{LOOP}
import rooflight
with rooflight.record(project="llm", run="first", wait=3, active=4, units_per_step={{"tokens": 32}}) as rec:
    train(20, rec.step)
"""
WAITED = f"{RECORDED}\nprint(rec.wait(120), rec.page, rec.problem, sep='|')\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


def run(home: Path, script: str, *before: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A script as a training: in a process of its own, told of a server by its environment."""
    home.parent.mkdir(exist_ok=True)
    file = home.parent / "train.py"
    file.write_text(script)
    env = {k: v for k, v in os.environ.items() if not k.startswith("ROOFLIGHT_")}
    env |= {"ROOFLIGHT_STATE": str(home)} | environ
    command = [sys.executable, *before, str(file)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)


def folders(home: Path) -> list[Path]:
    return sorted((home / "records").iterdir())


def analysis(home: Path) -> dict[str, Any]:
    [folder] = folders(home)
    found: dict[str, Any] = json.loads((folder / "analysis.json").read_bytes())
    return found


@pytest.mark.torch
def test_the_window_is_analysed_and_sent_by_another_process(home: Path) -> None:
    with running(FakeServer(accepts)) as server:
        done = run(home, WAITED, ROOFLIGHT_SERVER=server.url, ROOFLIGHT_TOKEN=TOKEN)
    assert done.stdout.splitlines()[1] == f"True|{server.url}/runs/r-1|None", done.stderr
    assert server.paths() == ["/projects", "/projects/p-1/runs", "/runs/r-1/profiles"]
    assert {request.headers["authorization"] for request in server.seen} == {f"Bearer {TOKEN}"}
    # A host would differ between the nodes of a launch, whose requests must be the same.
    assert json.loads(server.seen[1].body) == {"name": "first"}
    pushed = json.loads(server.seen[2].body)
    # 3 steps wait, 2 warm up, 4 are recorded.
    assert pushed["ranks"][0]["n_steps"] == 4
    assert pushed["units_per_step"] == {"tokens": 32}
    assert pushed == analysis(home)
    [folder] = folders(home)
    assert not [path for path in folder.iterdir() if TOKEN.encode() in path.read_bytes()]
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.torch
@pytest.mark.parametrize(
    ("ending", "status"), [("", 0), ("raise SystemExit(7)", 7), ("raise RuntimeError('no')", 1)]
)
def test_with_a_server_that_is_down_the_training_is_as_without_us(
    home: Path, ending: str, status: int
) -> None:
    plain = run(home, PLAIN + ending)
    ours = run(home, RECORDED + ending, ROOFLIGHT_SERVER="http://127.0.0.1:9")
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.returncode == status
    assert ours.stdout.startswith("weights ")


@pytest.mark.torch
def test_the_training_does_not_wait_and_its_end_does_not_end_the_child(home: Path) -> None:
    ended = threading.Event()

    def answer(request: Seen) -> tuple[int, dict[str, object]]:
        assert ended.wait(120)
        return accepts(request)

    with running(FakeServer(answer)) as server:
        script = f"{RECORDED}\nimport os; print(os.getpid())"
        done = run(home, script, ROOFLIGHT_SERVER=server.url)
        # The training is over, and the server has not answered yet; what a scheduler then ends is its group.
        with pytest.raises(ProcessLookupError):
            os.killpg(int(done.stdout.split()[-1]), signal.SIGKILL)
        ended.set()
        _until(lambda: len(server.seen) == 3)
    assert server.paths()[-1] == "/runs/r-1/profiles"


@pytest.mark.torch
def test_what_could_not_be_sent_is_kept_and_said(home: Path) -> None:
    def refuses(request: Seen) -> tuple[int, dict[str, object]]:
        return 403, {"title": "not with this token"}

    with running(FakeServer(refuses)) as server:
        done = run(home, WAITED, ROOFLIGHT_SERVER=server.url)
    assert done.stdout.splitlines()[1] == "False|None|not sent: the server answered 403: not with this token"
    assert analysis(home)["ranks"][0]["n_steps"] == 4
    assert "not with this token" in (folders(home)[0] / "handover.log").read_text()


@pytest.mark.torch
def test_the_ranks_of_a_launch_ask_for_one_run_and_another_launch_for_another(home: Path) -> None:
    script = f"import torch.distributed as d\nd.init_process_group('gloo')\n{WAITED}"
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    with running(FakeServer(accepts)) as server:
        for _ in range(2):
            done = run(home, script, *torchrun, ROOFLIGHT_SERVER=server.url, OMP_NUM_THREADS="1")
            assert done.returncode == 0, done.stderr
    made = [request for request in server.seen if request.path.endswith("/runs")]
    keys = [request.headers["idempotency-key"] for request in made]
    assert len(keys) == 4
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert len({request.body for request in made}) == 1
    pushed = [json.loads(r.body) for r in server.seen if r.path.endswith("/profiles")]
    ranks = [(p["ranks"][0]["rank"], p["world_size"], p["ranks"][0]["n_steps"]) for p in pushed]
    assert sorted(ranks) == [(0, 2, 4), (0, 2, 4), (1, 2, 4), (1, 2, 4)]


@pytest.mark.torch
def test_the_launcher_and_the_recorder_tell_the_same_of_a_program(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    window = ("--wait", "3", "--steps", "4", "--no-push", "--out", str(out))
    launched = run(home, PLAIN, "-m", "agent.cli", "run", *window, "--", sys.executable)
    assert launched.returncode == 0, launched.stderr
    run(home, WAITED)
    [theirs] = json.loads((out / "analysis.json").read_bytes())["ranks"]
    [ours] = analysis(home)["ranks"]
    assert ours["n_steps"] == theirs["n_steps"] == 4
    assert ours["cpu"]["regime"] == theirs["cpu"]["regime"]
    rows = [sorted((op["name"], op["count"]) for op in rank["cpu"]["ops"]) for rank in (ours, theirs)]
    assert rows[0] == rows[1]


@pytest.mark.torch
def test_too_few_steps_are_a_problem_that_is_said_and_leave_no_folder(home: Path) -> None:
    done = run(home, WAITED.replace("train(20", "train(4"))
    said = "no step was recorded: the program took fewer steps than wait and warmup"
    assert done.stdout.splitlines()[1] == f"False|None|{said}", done.stderr
    assert folders(home) == []


@pytest.mark.torch
def test_where_nothing_can_be_written_the_training_goes_on(home: Path) -> None:
    home.parent.mkdir(exist_ok=True)
    home.write_text("a file where a folder should be")
    done = run(home, WAITED)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == run(home, PLAIN).stdout.splitlines()[0]
    assert "NotADirectoryError" in done.stdout.splitlines()[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"active": 0},
        {"wait": -1},
        {"server": "ftp://rooflight.example"},
        {"server": "http://rooflight.example", "token": TOKEN},
        {"server": "https://rooflight.example", "token": "a b\n"},
        {"units_per_step": {"tokens": 0}},
        {"units_per_step": {"tokens": float("nan")}},
        {"units_per_step": {"tokens": "many"}},
        {"units_per_step": {"": 1}},
        {"units_per_step": {"to\nkens": 1}},
    ],
)
def test_arguments_that_cannot_be_are_refused_before_the_training(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, rooflight.Refused)):
        rooflight.record(**wrong)


def test_a_recorder_without_torch_says_so_and_raises_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with rooflight.record(wait=0, out=tmp_path) as rec:
        rec.step()
    assert rec.problem is not None
    assert "torch" in rec.problem
    assert not rec.wait(1)


class _StartedError(Exception):
    pass


def test_the_token_goes_by_the_environment_and_the_child_has_its_own_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[list[str], dict[str, Any]]] = []

    def popen(command: list[str], **options: Any) -> None:
        seen.append((command, options))
        raise _StartedError

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setenv("ROOFLIGHT_TOKEN", "another")
    with pytest.raises(_StartedError):
        recorder._start(tmp_path, TOKEN)
    with pytest.raises(_StartedError):
        recorder._start(tmp_path, None)
    (command, options), (_, without) = seen
    assert command == [sys.executable, "-P", "-m", "rooflight.handover", str(tmp_path)]
    assert options["env"]["ROOFLIGHT_TOKEN"] == TOKEN
    assert "ROOFLIGHT_TOKEN" not in without["env"]
    assert options["start_new_session"] is True
    assert options["stdin"] == subprocess.DEVNULL


def test_the_last_launches_are_kept_each_with_all_of_its_ranks(tmp_path: Path) -> None:
    base = tmp_path / "records"
    for n in range(KEPT + 3):
        for rank in range(2):
            folder = base / f"20260101T0000{n:02}-launch{n:02}-{rank}"
            folder.mkdir(parents=True)
            (folder / "outcome.json").write_text("{}")
    # Of the three that are too many the newest is still to be analysed.
    for rank in range(2):
        (base / f"20260101T000002-launch02-{rank}" / "outcome.json").unlink()
    recorder._forget_old(base)
    left = [path.name.split("-")[1] for path in sorted(base.iterdir())]
    assert left == [f"launch{n:02}" for n in range(2, KEPT + 3) for _ in range(2)]


def test_a_folder_of_its_own_choice_is_never_cleared(tmp_path: Path) -> None:
    for n in range(KEPT + 3):
        with rooflight.record(out=tmp_path, launch=str(n)) as rec:
            assert rec.folder is not None
            (rec.folder / "outcome.json").write_text("{}")
    assert len(list(tmp_path.iterdir())) == KEPT + 3


def test_recordings_one_after_another_are_runs_of_their_own_and_the_ranks_agree() -> None:
    """Each process counts: the n-th recording of one belongs to the n-th of the others."""

    def keys() -> list[str]:
        recorder._recorded.clear()
        return [rooflight.record("p", "r", launch="one")._key(2) for _ in range(3)]

    first, second = keys(), keys()
    assert first == second
    assert len(set(first)) == 3


def test_a_launch_whose_ranks_the_run_has_already_is_the_next_one() -> None:
    """Two launches from one shell, of two ranks each: only the ranks that are there tell them apart."""
    runs: dict[str, set[int]] = {}

    def answer(request: Seen) -> tuple[int, dict[str, object]]:
        if request.path.endswith("/runs"):
            return 201, {"id": request.headers["idempotency-key"]}
        if not request.path.endswith("/profiles"):
            return accepts(request)
        ranks = runs.setdefault(request.path.split("/")[-2], set())
        rank = json.loads(request.body)["ranks"][0]["rank"]
        if rank in ranks:
            return 409, {"title": f"rank {rank} is in this run already"}
        ranks.add(rank)
        return 201, {}

    with running(FakeServer(answer)) as server:
        order = Order("t", "p", "k", server=server.url)
        found = [sent(order, _of_rank(rank), Retry(tries=1)).run_id for rank in (0, 1, 1, 0)]
    assert found[0] == found[1] == "k"
    assert found[2] == found[3] != "k"
    assert list(runs.values()) == [{0, 1}, {0, 1}]


def test_another_refusal_is_not_tried_again() -> None:
    def answer(request: Seen) -> tuple[int, dict[str, object]]:
        return (422, {"title": "no"}) if request.path.endswith("/profiles") else accepts(request)

    with running(FakeServer(answer)) as server, pytest.raises(Rejected):
        sent(Order("t", "p", "k", run="r", server=server.url), _of_rank(0), Retry(tries=1))
    assert len(server.seen) == 3


def _of_rank(rank: int) -> Document:
    document = a_document()
    document.ranks[0].rank = rank
    return document


def _until(true: Any) -> None:
    for _ in range(600):
        if true():
            return
        threading.Event().wait(0.1)
    raise AssertionError("it never came")
