"""Decides what this machine can test.

A marker such as ``postgres`` names something outside Python that a test needs.  Where it is absent the
tests are left out and named at the end; under CI=true they are a failure, since there nothing may go
untested in silence.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import cache

import hypothesis
import pytest

from tests import shared

# A deadline per example measures the neighbours of a shared machine, not the code.
hypothesis.settings.register_profile("rooflight", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("rooflight")


def _postgres() -> str | None:
    import psycopg

    try:
        psycopg.connect(shared.postgres_url(), connect_timeout=3).close()
    except psycopg.OperationalError as e:
        return f"PostgreSQL at {shared.postgres_url()}: {str(e).splitlines()[0]}"
    return None


def _browser() -> str | None:
    return None if shared.chromium() else "no chromium on the path"


def _compiler() -> str | None:
    return None if shutil.which("gcc") or shutil.which("cc") else "no C compiler on the path"


def _torch() -> str | None:
    return None if importlib.util.find_spec("torch") else "torch is not installed"


def _frameworks() -> str | None:
    names = ("transformers", "accelerate", "lightning")
    absent = [name for name in names if not importlib.util.find_spec(name)]
    return f"{', '.join(absent)} not installed" if absent else None


def _traces() -> str | None:
    folder = shared.traces_dir()
    return None if folder.is_dir() else f"no folder {folder}; ROOFLIGHT_TRACES names another"


def _node() -> str | None:
    return None if shutil.which("node") else "no node on the path"


def _curl() -> str | None:
    return None if shutil.which("curl") else "no curl on the path"


def _systemd() -> str | None:
    return None if shutil.which("systemd-analyze") else "no systemd-analyze on the path"


PROBES: dict[str, Callable[[], str | None]] = {
    "postgres": _postgres,
    "browser": _browser,
    "compiler": _compiler,
    "torch": _torch,
    "frameworks": _frameworks,
    "traces": _traces,
    "node": _node,
    "curl": _curl,
    "systemd": _systemd,
}


@cache
def missing(marker: str) -> str | None:
    """Why tests with this marker cannot run here, or None when they can."""
    return PROBES[marker]()


_NOT_RUN = pytest.StashKey[dict[str, list[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_NOT_RUN] = defaultdict(list)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = []
    for item in items:
        if "e2e" in item.path.parts:
            # One worker runs them one after another: each starts a server, a browser or both.
            item.add_marker(pytest.mark.xdist_group("e2e"))
        reasons = {m: missing(m) for m in PROBES if item.get_closest_marker(m)}
        marker = next((m for m, why in reasons.items() if why), None)
        if marker:
            config.stash[_NOT_RUN][f"{marker}: {reasons[marker]}"].append(item.nodeid)
            left_out.append(item)
    if left_out:
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left_out)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    # Bytes may hold a time (gzip's header does), and the workers of pytest-xdist must agree on names.
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    output = getattr(config, "workeroutput", None)
    if output is not None:
        # A worker of pytest-xdist: the controller did not collect and learns it from here.
        output["not_run"] = dict(config.stash[_NOT_RUN])
    elif config.stash[_NOT_RUN] and os.environ.get("CI") == "true" and exitstatus in (0, 5):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: pytest.Item, error: object) -> None:
    # Every worker collects all tests, so the workers agree and one answer is enough.
    node.config.stash[_NOT_RUN].update(getattr(node, "workeroutput", {}).get("not_run", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # scripts/test runs linters first; pytest's summary is the last thing on screen, so it repeats them.
    failed_checks = os.environ.get("ROOFLIGHT_FAILED_CHECKS")
    if failed_checks:
        terminalreporter.section("checks that failed before the tests", red=True)
        terminalreporter.line(failed_checks)
    not_run = terminalreporter.config.stash[_NOT_RUN]
    if not not_run:
        return
    terminalreporter.section("did not run", yellow=True)
    for reason, nodes in not_run.items():
        terminalreporter.line(f"{reason} ({len(nodes)} tests)", yellow=True)
        for node in nodes:
            terminalreporter.line(f"    {node}")
    if os.environ.get("CI") == "true":
        terminalreporter.line("CI=true: what did not run counts as a failure", red=True)
