"""The commands of ``rooflight-server``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import main
from app.settings import Settings
from rooflight import __version__
from tests.app.conftest import a_postgres


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    status = main(list(args))
    out, err = capsys.readouterr()
    return status, out, err


def test_a_token_is_shown_once_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ("--data", str(tmp_path))
    status, text, _ = run(capsys, "token", "create", "--name", "ci", "--project", "demo", *data)
    assert status == 0
    prefix = text.split("_")[1]
    assert len(text.strip()) == len("rfl_") + 12 + 1 + 43
    _, listed, _ = run(capsys, "token", "list", *data)
    assert prefix in listed
    assert "read,write" in listed
    assert text.strip() not in listed
    assert run(capsys, "token", "revoke", prefix, *data)[0] == 0
    assert "revoked" in run(capsys, "token", "list", *data)[1]
    status, _, err = run(capsys, "token", "revoke", "ffffffffffff", *data)
    assert status == 2
    assert "no token" in err
    assert "token list" in err
    # Neither the secret nor anything it can be read from is in the data folder.
    secret = text.strip().split("_", 2)[2].encode()
    assert all(secret not in f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())


def test_another_address_needs_the_flag_and_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remote = ("serve", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path))
    status, _, err = run(capsys, *remote)
    assert status == 2
    assert "--allow-remote" in err
    status, _, err = run(capsys, *remote, "--allow-remote")
    assert status == 2
    assert "token create" in err


def test_a_bad_setting_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFLIGHT_RATIO", "many")
    status, _, err = run(capsys, "migrate", "--data", str(tmp_path))
    assert status == 2
    assert "ROOFLIGHT_RATIO" in err
    assert "Traceback" not in err


def test_a_database_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("postgresql://nobody@127.0.0.1:1/none", "oracle://x", "not a url"):
        status, _, err = run(capsys, "migrate", "--data", str(tmp_path), "--database", url)
        assert status == 2, url
        assert len(err.strip().splitlines()) == 1, err


@pytest.mark.postgres
def test_postgresql_is_migrated_by_command_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with a_postgres() as url:
        place = ("--data", str(tmp_path), "--database", url)
        status, _, err = run(capsys, "token", "create", *place)
        assert status == 2
        assert "rooflight-server migrate" in err
        assert run(capsys, "migrate", *place)[0] == 0
        assert run(capsys, "token", "create", *place)[0] == 0


def test_help_needs_no_web_framework() -> None:
    code = (
        "import sys; from app.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "sys.exit(any(m in sys.modules for m in ('fastapi', 'uvicorn', 'duckdb', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("serve", "worker", "migrate", "token"):
        assert command in done.stdout


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys)
    assert status == 2
    assert "serve" in out
    assert Settings().host == "127.0.0.1"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"rooflight-server {__version__}\n"
