"""What is taken as a process's recording, and the room for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.capture.coordinator import Client, Member
from agent.capture.traces import Room, fetch
from rooflight.captures import Captured
from rooflight.errors import Refused


def _member(uid: int | None = None) -> Member:
    who = os.getuid() if uid is None else uid
    return Member(Client(7, 7, who, 1, 0, True, 0.0, frozenset((7,))), "token", Captured(pid=7))


def test_what_is_not_there_yet_is_asked_again(tmp_path: Path) -> None:
    # Kineto writes x.json.tmp and renames it: the name is there only when the file is whole.
    (tmp_path / "x.json.tmp").write_text("{")
    assert not fetch(_member(), tmp_path / "x.json", tmp_path / "copy", 100)


def test_a_finished_trace_is_fetched_and_removed_where_it_lay(tmp_path: Path) -> None:
    source = tmp_path / "x.json"
    source.write_text("{}")
    assert fetch(_member(), source, tmp_path / "copy", 2)
    assert (tmp_path / "copy").read_text() == "{}"
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    assert not source.exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "x.json").symlink_to(tmp_path / "secret")
    with pytest.raises(Refused, match="cannot be opened"):
        fetch(_member(), tmp_path / "x.json", tmp_path / "copy", 100)
    assert (tmp_path / "secret").read_text() == "secret"
    assert not (tmp_path / "copy").exists()


def test_a_pipe_does_not_hold_the_agent_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(Refused, match="no file of the process's user"):
        fetch(_member(), tmp_path / "x.json", tmp_path / "copy", 100)


def test_a_file_of_another_user_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(Refused, match="no file of the process's user"):
        fetch(_member(uid=os.getuid() + 1), tmp_path / "x.json", tmp_path / "copy", 100)


def test_one_that_is_too_large_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"x" * (3 << 20))
    with pytest.raises(Refused, match="3 MiB, the limit is 2 MiB"):
        fetch(_member(), tmp_path / "x.json", tmp_path / "copy", 2 << 20)


def test_the_oldest_recordings_make_room(tmp_path: Path) -> None:
    for n in range(4):
        folder = tmp_path / f"c{n}"
        folder.mkdir()
        (folder / "trace").write_bytes(b"x" * 100)
        os.utime(folder, (n, n))
    # 400 bytes are there; half of 500 may stay: two captures of 100.
    Room(tmp_path, budget=500, spare=0).check()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c2", "c3"]


def test_a_full_disk_takes_no_recording(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no room for a recording"):
        Room(tmp_path, spare=1 << 60).check()
