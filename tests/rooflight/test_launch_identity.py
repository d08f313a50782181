"""Which processes are ranks of one launch."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rooflight.launch import identity, key, process

SLURM = {"SLURM_JOB_ID": "71", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "16"}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "a5c1",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29500",
}


@pytest.mark.parametrize("given", [SLURM, TORCHRUN, SLURM | TORCHRUN, {"ROOFLIGHT_LAUNCH": "mine"}])
def test_what_a_launcher_gives_to_all_of_its_ranks_is_one_launch(given: dict[str, str]) -> None:
    ranks = [given | {"RANK": str(n), "SLURM_PROCID": str(n), "LOCAL_RANK": str(n % 8)} for n in range(16)]
    assert len({identity(environ, several=True) for environ in ranks}) == 1


@pytest.mark.parametrize(
    "other",
    [
        SLURM | {"SLURM_JOB_ID": "72"},
        SLURM | {"SLURM_STEP_ID": "1"},
        SLURM | {"SLURM_RESTART_COUNT": "1"},
        SLURM | TORCHRUN,
        TORCHRUN,
        TORCHRUN | {"TORCHELASTIC_RUN_ID": "b"},
        TORCHRUN | {"TORCHELASTIC_RESTART_COUNT": "1"},
        TORCHRUN | {"MASTER_PORT": "29501"},
        {"ROOFLIGHT_LAUNCH": "mine"},
        {},
    ],
)
def test_another_job_step_restart_or_rendezvous_is_another_launch(other: dict[str, str]) -> None:
    known = [SLURM, TORCHRUN | {"MASTER_ADDR": "node9"}]
    assert identity(other, several=True) not in {identity(environ, several=True) for environ in known}


def test_a_single_process_is_a_launch_of_its_own_each_time() -> None:
    assert identity(SLURM, several=False) != identity(SLURM, several=False)


@pytest.mark.parametrize("nothing", [{"TORCHELASTIC_RUN_ID": "none"}, {"TORCHELASTIC_RUN_ID": ""}, {}])
def test_where_no_launcher_tells_it_is_the_parent(nothing: dict[str, str]) -> None:
    # A batch script of SLURM has no step: its launches come one after another.
    assert identity(nothing | {"SLURM_JOB_ID": "71"}, several=True) == process(os.getppid(), "")
    again = identity(nothing | {"TORCHELASTIC_RESTART_COUNT": "1"}, several=True)
    assert again == process(os.getppid(), "1")


def test_children_of_one_process_share_it_and_no_word_is_of_two_processes() -> None:
    ask = "import os; from rooflight.launch import identity; print(identity({}, several=True))"
    said = [subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True) for _ in range(2)]
    assert {done.stdout.strip() for done in said} == {process(os.getpid(), "")}
    assert process(os.getpid()) != process(os.getppid())


def test_the_parts_of_a_key_are_told_apart() -> None:
    assert key("ab", "c") != key("a", "bc")
    assert key(None, "a") == key(None, "a")
