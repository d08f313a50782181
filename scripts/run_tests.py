"""The body of scripts/test: checks, then the tests; pytest's summary is the last thing on screen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import machine

CHECKOUT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def checks() -> dict[str, list[str]]:
    """Name and command of each check that is no test."""
    found = {
        "ruff check": [str(BIN / "ruff"), "check", "."],
        "ruff format": [str(BIN / "ruff"), "format", "--check", "."],
        "mypy": [str(BIN / "mypy")],
        "imports": [str(BIN / "lint-imports"), "--no-cache"],
    }
    modules = sorted(str(p.relative_to(CHECKOUT)) for p in CHECKOUT.glob("web/static/js/**/*.test.js"))
    node = machine.find_program("node")
    if node and modules:
        found["page modules"] = [node, "--test", *modules]
    return found


def run_checks() -> list[str]:
    """Run every check; the names of those that failed. The output of a good one is not shown."""
    failed = []
    for name, command in checks().items():
        start = time.perf_counter()
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        good = done.returncode == 0
        print(
            f"test: {name:<14} {'good' if good else 'FAILED'} ({time.perf_counter() - start:.1f} s)",
            flush=True,
        )
        if not good:
            print(done.stdout + done.stderr, flush=True)
            failed.append(name)
    return failed


def run_pytest(arguments: list[str], database: str | None, failed_checks: list[str]) -> int:
    """Run the tests on two processes; tests/conftest.py leaves out and names what cannot run here."""
    env = os.environ.copy()
    if database:
        env["ROOFLIGHT_TEST_POSTGRES"] = database
    if failed_checks:
        env["ROOFLIGHT_FAILED_CHECKS"] = ", ".join(failed_checks)
    spread = arguments or ["-n", "2", "--dist", "loadgroup", "--durations=15"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *spread], cwd=CHECKOUT, env=env, check=False
    ).returncode


def main(arguments: list[str]) -> int:
    """0 when every check and every test that can run here is good."""
    # A polite end from outside unwinds too, so that no server of ours is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine.install(machine.absent())
    for need in machine.absent():
        print(
            f"test: {need} is missing and could not be installed; its tests are named at the end", flush=True
        )
    failed = [] if arguments else run_checks()
    with machine.postgres() as database:
        status = run_pytest(arguments, database, failed)
    return status or int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
