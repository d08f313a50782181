"""The real sockets: who is heard, who is answered, and what is left behind."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.capture.fabric import Fabric
from rooflight.errors import Refused


class Process:
    """A training process's side of the fabric."""

    def __init__(self, folder: Path, name: str = "dynoconfigclient-1") -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(5)
        self.socket.bind(str(folder / name))
        self.folder = folder

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, data: bytes) -> None:
        self.socket.sendto(data, str(self.folder / "dynolog"))


@pytest.fixture
def folder() -> Iterator[Path]:
    # The path of a socket has at most 107 bytes: a short name.
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_a_process_is_heard_with_the_kernels_word_for_it_and_answered(folder: Path) -> None:
    with Fabric(folder) as fabric, Process(folder) as process:
        process.ask(b"hello")
        [heard] = list(fabric.heard())
        assert (heard.data, heard.pid, heard.uid) == (b"hello", os.getpid(), os.getuid())
        assert fabric.answer(heard, b"answer")
        assert process.socket.recv(100) == b"answer"


def test_the_abstract_name_works_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name of its own: a daemon of this machine may have the usual one.
    monkeypatch.setattr("agent.capture.fabric.NAME", f"dynolog-{os.getpid()}")
    with Fabric() as fabric, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.bind(b"\0dynoconfigclient-abstract\0")
        client.sendto(b"hello", f"\0dynolog-{os.getpid()}\0".encode())
        select.select([fabric], [], [], 5)
        [heard] = list(fabric.heard())
        assert fabric.answer(heard, b"answer")
        assert client.recv(100) == b"answer"


def test_a_sender_elsewhere_is_answered_in_our_folder_or_not_at_all(folder: Path) -> None:
    other = folder / "other"
    other.mkdir()
    with Fabric(folder) as fabric:
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        stranger.bind(str(other / "victim"))
        stranger.sendto(b"hello", str(folder / "dynolog"))
        [heard] = list(fabric.heard())
        assert not fabric.answer(heard, b"answer")
        stranger.close()


def test_the_name_is_taken_away_at_the_end(folder: Path) -> None:
    with Fabric(folder):
        assert (folder / "dynolog").is_socket()
    assert not (folder / "dynolog").exists()


def test_a_killed_agents_socket_does_not_keep_the_next_one_out(folder: Path) -> None:
    script = (
        "import os, pathlib, sys; from agent.capture.fabric import Fabric; "
        "f = Fabric(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(folder)], check=False)
    assert ended.returncode == -9
    assert (folder / "dynolog").is_socket()
    with Fabric(folder) as fabric, Process(folder) as process:
        process.ask(b"hello")
        assert len(list(fabric.heard())) == 1


def test_a_second_daemon_is_refused_and_the_first_goes_on(folder: Path) -> None:
    with Fabric(folder) as first, Process(folder) as process:
        with pytest.raises(Refused, match="another daemon answers there"):
            Fabric(folder)
        process.ask(b"hello")
        assert len(list(first.heard())) == 1


def test_sockets_of_ended_processes_are_swept_and_those_of_others_stay(folder: Path) -> None:
    with Fabric(folder) as fabric:
        Process(folder, "dynoconfigclient-dead").socket.close()
        alive = Process(folder, "dynoconfigclient-alive")
        assert fabric.sweep() == 1
        assert sorted(p.name for p in folder.iterdir()) == ["dynoconfigclient-alive", "dynolog"]
        alive.socket.close()


def test_a_folder_whose_processes_could_not_bind_is_refused(tmp_path: Path) -> None:
    # 107 bytes, less "/" and "dynoconfigclient" with a UUID of 36 characters: 107 - 1 - 52 = 54.
    long = tmp_path / ("x" * 55)
    with pytest.raises(Refused, match="longer than 54 bytes"):
        Fabric(long)
