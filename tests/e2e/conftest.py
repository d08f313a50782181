"""A real server on a free port and a real browser, for the tests of whole roads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import shared

START_S = 60


@dataclass
class Server:
    """A running ``rooflight-server serve`` with its data folder; ``lines`` is what it printed."""

    url: str
    data: Path
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    reader: threading.Thread = field(default_factory=threading.Thread)

    def stop(self) -> None:
        """End it as Ctrl-C does; by force when it does not listen."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(5)
        if self.process.stdout:
            self.process.stdout.close()


def server_command(*args: str) -> list[str]:
    """The command ``rooflight-server`` of this environment."""
    return [sys.executable, "-c", "import sys; from app.cli import main; sys.exit(main(sys.argv[1:]))", *args]


def start_server(data: Path) -> Server:
    """Start the service on a free port over ``data`` and wait until it listens."""
    env = {**os.environ, "ROOFLIGHT_DATA": str(data), "PYTHONPATH": str(shared.CHECKOUT)}
    process = subprocess.Popen(
        server_command("serve", "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        cwd=data,
    )
    server = Server("", data, process)
    listening = threading.Event()
    server.reader = threading.Thread(target=_read, args=(server, listening), daemon=True)
    server.reader.start()
    if not listening.wait(START_S) or not server.url:
        server.stop()
        raise RuntimeError("the server did not start:\n" + "".join(server.lines[-30:]))
    return server


def _read(server: Server, listening: threading.Event) -> None:
    assert server.process.stdout
    for line in server.process.stdout:
        server.lines.append(line)
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            server.url = found[1]
            listening.set()
    listening.set()  # it ended: whoever waits learns it


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One service for the tests of a module."""
    running = start_server(tmp_path_factory.mktemp("service"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    """A token that may write."""
    done = subprocess.run(
        server_command("token", "create", "--name", "e2e"),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ROOFLIGHT_DATA": str(server.data), "PYTHONPATH": str(shared.CHECKOUT)},
    )
    found = re.search(r"rfl_\S+", done.stdout)
    assert found, done.stdout
    return found[0]
