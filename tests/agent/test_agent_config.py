"""Flags over environment over file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load
from rooflight.errors import Refused


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(home: Path, text: str) -> None:
    path = home / ".config/rooflight/agent.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_nothing_is_sent_by_default(home: Path) -> None:
    got = load({}, {})
    assert (got.server, got.token, got.project) == (None, None, "default")
    assert got.state == home / ".local/state/rooflight"


def test_flags_beat_the_environment_and_the_environment_the_file(home: Path) -> None:
    write(home, 'server = "https://file"\nproject = "file"\ntoken = "file"\n')
    got = load({"server": "https://flag"}, {"ROOFLIGHT_SERVER": "https://env", "ROOFLIGHT_PROJECT": "env"})
    assert (got.server, got.project, got.token) == ("https://flag", "env", "file")


def test_the_environment_names_the_file_and_the_state_folder(home: Path) -> None:
    file = home / "other.toml"
    file.write_text('server = "https://other"\n')
    got = load({}, {"ROOFLIGHT_CONFIG": str(file), "ROOFLIGHT_STATE": "~/state"})
    assert (got.server, got.state) == ("https://other", home / "state")


def test_the_token_is_not_in_the_representation(home: Path) -> None:
    assert "secret" not in repr(load({"token": "secret"}, {}))


@pytest.mark.parametrize(
    ("text", "names"),
    [('sever = "x"', "sever"), ("server = 7", "server"), ("server = ", "agent.toml"), ("\x00", "agent.toml")],
)
def test_a_wrong_file_is_refused_by_name(home: Path, text: str, names: str) -> None:
    write(home, text)
    with pytest.raises(Refused, match=names):
        load({}, {})


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://localhost", ("localhost", 9400, "/metrics")),
        ("http://dcgm.gpu-operator:9401/m?x=1", ("dcgm.gpu-operator", 9401, "/m?x=1")),
        ("http://[::1]:9400/metrics", ("::1", 9400, "/metrics")),
    ],
)
def test_where_dcgms_exporter_is(home: Path, text: str, address: tuple[str, int, str]) -> None:
    got = load({}, {"ROOFLIGHT_DCGM": text}).daemon.dcgm
    assert got is not None
    assert (got.host, got.port, got.path) == address
    assert load({"dcgm": "off"}, {"ROOFLIGHT_DCGM": text}).daemon.dcgm is None
    assert load({}, {}).daemon.dcgm is None


@pytest.mark.parametrize(
    "text",
    ["localhost:9400", "https://host", "http://", "http://u:p@host", "http://host:99999", "http://a b",
     "http://h/\r\nX", "http://h/#f", "file:///etc/passwd", "http://[::1"],
)  # fmt: skip
def test_what_is_no_address_of_it_is_refused(home: Path, text: str) -> None:
    with pytest.raises(Refused, match="dcgm is"):
        load({"dcgm": text}, {})
