"""What happens where a machine lacks something: named, and a failure under CI=true."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import CHECKOUT

TWO_TESTS = """
import pytest

@pytest.mark.traces
def test_needs_the_traces(): pass

def test_needs_nothing(): pass
"""


def run_two_tests(tmp_path: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one test that needs the traces and one that does not, under this checkout's conftest."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "conftest.py").write_text((CHECKOUT / "tests" / "conftest.py").read_text())
    (folder / "test_two.py").write_text(TWO_TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        CHECKOUT / "pyproject.toml",
        folder,
        "-p",
        "no:cacheprovider",
    ]
    outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST") and k != "CI"}
    env = outside | {"PYTHONPATH": str(CHECKOUT), **environment}
    return subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path, env=env)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["serial", "xdist"])
def test_what_did_not_run_is_named(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run_two_tests(tmp_path, *options, ROOFLIGHT_TRACES=str(tmp_path / "nowhere"))
    assert done.returncode == 0, done.stdout
    assert "did not run" in done.stdout
    assert f"traces: no folder {tmp_path}/nowhere" in done.stdout
    assert "test_two.py::test_needs_the_traces" in done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["serial", "xdist"])
def test_under_ci_it_is_a_failure(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run_two_tests(tmp_path, *options, ROOFLIGHT_TRACES=str(tmp_path / "nowhere"), CI="true")
    assert done.returncode == 1, done.stdout
    assert "what did not run counts as a failure" in done.stdout


def test_with_everything_there_all_run(tmp_path: Path) -> None:
    done = run_two_tests(tmp_path, ROOFLIGHT_TRACES=str(tmp_path), CI="true")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert "did not run" not in done.stdout
