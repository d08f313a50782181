"""scripts/setup with a Python that only writes down what it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.shared import CHECKOUT

PYTHON = """#!/bin/sh
echo "$@" >> "$STUB_LOG"
case "$*" in
    *"-m venv "*)
        mkdir -p "$3/bin"
        cp "$0" "$3/bin/python"
        echo "command = x -m venv $3" > "$3/pyvenv.cfg";;
    *"import torch"*) exit ${STUB_TORCH:-1};;
    *"pip install"*torch==*) exit ${STUB_INDEX:-0};;
    *"version_info"*) exit ${STUB_TOO_OLD:-0};;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What scripts/setup reads, in a folder of its own, beside a stub of Python."""
    root = tmp_path / "checkout"
    for name in ("scripts/setup", "constraints.txt", "pyproject.toml", "packaging/pyproject.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, root / name)
    stub = root / "python-stub"
    stub.write_text(PYTHON)
    stub.chmod(0o755)
    return root


def setup(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "ROOFLIGHT_PYTHON": str(checkout / "python-stub"),
        "STUB_LOG": str(checkout / "log"),
    }
    return subprocess.run([checkout / "scripts/setup"], env=env | environment, capture_output=True, text=True)


def asked(checkout: Path) -> list[str]:
    """Every call of Python so far."""
    return (checkout / "log").read_text().splitlines()


def test_a_first_run_makes_the_environment_and_installs_the_pinned_releases(checkout: Path) -> None:
    done = setup(checkout)
    assert done.returncode == 0, done.stderr
    installs = [call for call in asked(checkout) if "pip install" in call]
    assert all("--constraint constraints.txt" in call for call in installs)
    assert "--editable ./packaging --editable .[server,agent,dev]" in installs[1]
    assert "setup: done" in done.stdout


def test_a_second_run_asks_nothing(checkout: Path) -> None:
    setup(checkout)
    before = asked(checkout)
    done = setup(checkout)
    assert (done.returncode, done.stdout) == (0, "")
    assert asked(checkout) == before


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml", "packaging/pyproject.toml"])
def test_what_changes_the_environment_makes_it_run_again(checkout: Path, name: str) -> None:
    setup(checkout)
    before = asked(checkout)
    with (checkout / name).open("a") as file:
        file.write("# changed\n")
    setup(checkout)
    again = asked(checkout)[len(before) :]
    assert any("pip install" in call for call in again)
    # The environment itself still works and is kept.
    assert not any("-m venv" in call for call in again)


def test_a_checkout_that_was_moved_gets_a_new_environment(checkout: Path) -> None:
    setup(checkout)
    moved = checkout.with_name("moved")
    checkout.rename(moved)
    done = setup(moved)
    assert done.returncode == 0
    assert sum("-m venv" in call for call in asked(moved)) == 2


def test_without_torch_it_says_what_will_not_work_and_tries_again_next_time(checkout: Path) -> None:
    done = setup(checkout, STUB_INDEX="1")
    assert done.returncode == 0
    assert "torch" in done.stdout
    assert "could not be installed" in done.stdout
    assert "scripts/demo without --trace" in done.stdout
    assert "setup: done" in setup(checkout).stdout


def test_an_older_python_is_refused_in_words(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "cat", "cksum", "flock", "env"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "python3").write_text("#!/bin/sh\n[ $1 = --version ] && echo Python 3.9.2 && exit\nexit 1\n")
    (tools / "python3").chmod(0o755)
    done = setup(checkout, PATH=str(tools), ROOFLIGHT_PYTHON="")
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert not (checkout / ".venv").exists()
