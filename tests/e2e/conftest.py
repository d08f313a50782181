"""A real server on a free port and a real browser, for the tests of whole roads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from rooflight import protocol
from rooflight.protocol import Document, Kernel
from tests import shared
from tests.e2e.screen import EVIL, REFUSAL, WIDE
from tests.factories import a_document

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as p:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = p.chromium.launch(executable_path=shared.chromium(), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for all tests, so that plotly's 4.8 MB are fetched once, as they are for a reader."""
    opened = browser.new_context(viewport=WIDE)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page whose console stays silent: an error, or a violation of the CSP, fails the test."""
    opened = context.new_page()
    said: list[str] = []
    opened.on(
        "console", lambda m: said.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda e: said.append(f"uncaught: {e}"))
    yield opened
    if opened.url.startswith("http"):
        opened.evaluate("localStorage.clear()")
    opened.close()
    assert [line for line in said if not REFUSAL.search(line)] == []


@pytest.fixture(scope="module")
def push(server: Server, token: str) -> Callable[[str, Document], str]:
    """Push a document as a run of its own and give the run's id."""

    def call(path: str, body: bytes) -> Any:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.url}/api/v1/{path}", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def pushed(name: str, document: Document) -> str:
        project = call("projects", b'{"name": "vision"}')
        run = call(f"projects/{project['id']}/runs", json.dumps({"name": name}).encode())
        call(f"runs/{run['id']}/profiles", protocol.encode(document))
        return str(run["id"])

    return pushed


@pytest.fixture(scope="module")
def resnet(push: Callable[[str, Document], str]) -> str:
    document = a_document(kernels=60, steps=6)
    evil = Kernel(
        name=EVIL, short_name=EVIL, op="aten::<b>evil</b>", count=3, time_us=2_000.0, dtype="fp32",
        flops=10**9, bytes=10**7, ai=100.0, achieved_tflops=0.5, achieved_gbs=5.0, roof_fraction=0.04,
        regime="latency", origin="modelled",
    )  # fmt: skip
    document.ranks[0].kernels.append(evil)
    return push("resnet50", document)
