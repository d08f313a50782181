"""What the tests need outside Python: found, started, and stopped without a trace."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

from tests.shared import CHECKOUT

NOBODY_LISTENS = "postgresql://postgres@127.0.0.1:9/postgres"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    return importlib.import_module("machine")


@pytest.mark.postgres
def test_a_database_that_answers_is_taken_as_it_is(machine: ModuleType) -> None:
    with machine.postgres() as url:
        assert url == machine._postgres_url()


@pytest.mark.postgres
def test_else_one_of_our_own_is_started_and_thrown_away(
    machine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFLIGHT_TEST_POSTGRES", NOBODY_LISTENS)
    with machine.postgres() as url:
        assert url is not None
        assert url != NOBODY_LISTENS
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE mine")
            (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        assert Path(folder).exists()
    assert not Path(folder).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=3)


def test_without_its_programs_there_is_no_database(
    machine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFLIGHT_TEST_POSTGRES", NOBODY_LISTENS)
    monkeypatch.setattr(machine, "find_program", lambda name: None)
    with machine.postgres() as url:
        assert url is None


def test_what_is_not_there_is_named(machine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLIGHT_TEST_POSTGRES", NOBODY_LISTENS)
    monkeypatch.setattr(machine, "find_program", lambda name: "/bin/x" if name == "cc" else None)
    # A compiler by its other name is one.
    assert machine.absent() == ["PostgreSQL", "Chromium", "Node", "curl", "systemd-analyze"]


def test_nothing_is_installed_by_a_user_without_rights(
    machine: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine.subprocess, "run", lambda *_, **__: pytest.fail("nothing may be run"))
    machine.install(["Node"])
    assert capsys.readouterr().out == ""


def test_an_installation_that_fails_is_said_and_is_no_end(
    machine: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\necho "no route to the archive" >&2\nexit 100\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert shutil.which("apt-get") == str(apt)
    machine.install(["Node"])
    assert "apt-get install failed: no route to the archive" in capsys.readouterr().out
