"""A Rooflight server of our own on the loopback, and what one asks it over HTTP."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
START_SECONDS = 60.0
PR_SET_PDEATHSIG = 1


class DemoError(Exception):
    """Something that the demo needs did not happen; the message is for the person at the screen."""


@dataclass(frozen=True)
class Reply:
    """Status, content type and body of one answer."""

    status: int
    content_type: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Service:
    """A running server: its address, and its data folder and log for the person who looks closer."""

    url: str
    data: Path

    def get(self, path: str) -> Reply:
        """GET ``path``; an error status is a reply too."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=30) as answer:
                return _reply(answer)
        except urllib.error.HTTPError as e:
            return _reply(e)
        except OSError as e:
            raise DemoError(f"{self.url}{path} does not answer: {e}") from e


def _reply(answer: Any) -> Reply:
    return Reply(answer.status, answer.headers.get_content_type(), answer.read())


@contextlib.contextmanager
def serving(data: Path, port: int, programs: Path = BIN) -> Iterator[Service]:
    """Start ``rooflight-server serve`` on ``port``, or on a free one when it is taken; stop it at the end."""
    data.mkdir(parents=True, exist_ok=True)
    port = free_port(port)
    service = Service(f"http://127.0.0.1:{port}", data)
    command = [str(programs / "rooflight-server"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (data / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=environment(data), stdout=log, stderr=log, preexec_fn=_end_with_parent
        )
    try:
        _wait_until_ready(service, process)
        yield service
    finally:
        _stop(process)


def environment(data: Path) -> dict[str, str]:
    """The environment of the demo's programs: everything they keep lies in ``data``.

    What is set for another server of this machine must not leak in.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith("ROOFLIGHT_")}
    return own | {
        "ROOFLIGHT_DATA": str(data),
        "ROOFLIGHT_STATE": str(data / "agent"),
        "PYTHONUNBUFFERED": "1",
    }


def free_port(wanted: int) -> int:
    """``wanted`` when nobody listens there, else any free port of the loopback."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise DemoError("there is no free port on 127.0.0.1")


def _end_with_parent() -> None:
    # Even a demo that is killed with -9 leaves no server behind (Linux; elsewhere _stop has to do).
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_until_ready(service: Service, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise DemoError(f"the server ended at once:\n{_tail(service.data / 'server.log')}")
        with contextlib.suppress(DemoError):
            if service.get("/healthz").status == 200:
                return
        time.sleep(0.1)
    raise DemoError(f"the server did not come up in {START_SECONDS:.0f} s: {service.data / 'server.log'}")


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
