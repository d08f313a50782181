"""Sending, against a real HTTP server that answers from a script."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent.push import Client, PushError, Server, key_of
from agent.retry import LONGEST_WAIT_S, Backoff, Fate, fate, retry_after_s
from rooflight.errors import Refused

Answer = tuple[int, dict[str, str], dict[str, object]]


@dataclass
class Seen:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Script:
    """A server's answers in order (the last one is repeated), and what it was asked."""

    answers: list[Answer]
    seen: list[Seen] = field(default_factory=list)

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    script: Script

    def do_POST(self) -> None:
        body = (
            self.rfile.read(int(self.headers["content-length"])) if "content-length" in self.headers else b""
        )
        while self.headers.get("transfer-encoding") == "chunked":
            size = int(self.rfile.readline(), 16)
            body += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                break
        self.script.seen.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        status, headers, value = self.script.next()
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**headers, "content-length": str(len(data))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def script() -> Script:
    return Script([(200, {}, {})])


@pytest.fixture
def url(script: Script) -> Iterator[str]:
    handler = type("Scripted", (Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Clock:
    """Time that passes only by sleeping."""

    now: float = 1_764_500_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def a_client(url: str, clock: Clock, *, patience_s: float = 1000.0, token: str = "rfl_ab_cd") -> Client:
    return Client(Server(url, token), patience_s, clock.sleep, lambda: clock.now, random.Random(1))


def test_the_analysis_goes_with_token_and_a_key_of_its_content(script: Script, url: str) -> None:
    with a_client(url, Clock()) as client:
        client.push_analysis("7", b'{"a":1}')
    [seen] = script.seen
    assert (seen.path, seen.body) == ("/api/v1/runs/7/profiles", b'{"a":1}')
    assert seen.headers["authorization"] == "Bearer rfl_ab_cd"
    assert seen.headers["idempotency-key"] == key_of(b'{"a":1}') != key_of(b'{"a":2}')
    assert seen.headers["x-agent-time"] == "1764500000.000"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again_with_the_same_key(script: Script, url: str, status: int) -> None:
    script.answers = [(status, {}, {}), (status, {}, {}), (201, {}, {"ok": True})]
    clock = Clock()
    with a_client(url, clock) as client:
        assert client.push_calibration(b"{}") == {"ok": True}
    assert len({s.headers["idempotency-key"] for s in script.seen}) == 1
    assert len(script.seen) == 3
    assert len(clock.slept) == 2


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 405, 409, 413, 415, 422])
def test_what_would_fail_again_is_sent_once(script: Script, url: str, status: int) -> None:
    script.answers = [(status, {"location": "/elsewhere"}, {"title": "no", "detail": "field x is wrong"})]
    clock = Clock()
    with a_client(url, clock) as client, pytest.raises(PushError, match="field x is wrong") as e:
        client.push_calibration(b"{}")
    assert (len(script.seen), clock.slept, e.value.again, e.value.status) == (1, [], False, status)


def test_retry_after_is_the_least_wait(script: Script, url: str) -> None:
    script.answers = [(429, {"retry-after": "7"}, {}), (200, {}, {})]
    clock = Clock()
    with a_client(url, clock) as client:
        client.push_calibration(b"{}")
    assert clock.slept == [pytest.approx(7.0)]


def test_patience_ends_with_an_error_that_says_try_later(script: Script, url: str) -> None:
    script.answers = [(503, {"retry-after": "20"}, {})]
    clock = Clock()
    with (
        a_client(url, clock, patience_s=50) as client,
        pytest.raises(PushError, match="cannot take it now") as e,
    ):
        client.push_calibration(b"{}")
    # 0, 20 and 40 s; the wait after the third would end at 60.
    assert (len(script.seen), clock.slept, e.value.again) == (3, [20.0, 20.0], True)


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    clock = Clock()
    with (
        a_client(url, clock, patience_s=3600) as client,
        pytest.raises(PushError, match="no connection") as e,
    ):
        client.push_calibration(b"{}")
    assert e.value.again
    # Doubling to 300 s, drawn from 0 on: some 9 + 24 tries an hour, 60 at the very most.
    assert 12 <= len(clock.slept) <= 60
    assert max(clock.slept) <= LONGEST_WAIT_S


def test_a_run_is_made_in_its_project(script: Script, url: str) -> None:
    script.answers = [(201, {}, {"id": "p"}), (201, {}, {"id": "r-1"})]
    with a_client(url, Clock()) as client:
        assert client.create_run("vision/a", "nightly", "key") == "r-1"
    assert [s.path for s in script.seen] == ["/api/v1/projects", "/api/v1/projects/vision%2Fa/runs"]
    assert [json.loads(s.body) for s in script.seen] == [{"name": "vision/a"}, {"name": "nightly"}]
    assert len({s.headers["idempotency-key"] for s in script.seen}) == 2


@pytest.mark.parametrize("status", [403, 409])
def test_a_project_that_exists_is_used(script: Script, url: str, status: int) -> None:
    script.answers = [(status, {}, {}), (201, {}, {"id": 12})]
    with a_client(url, Clock()) as client:
        assert client.create_run("p", "r", "key") == "12"


@pytest.mark.parametrize("answer", [{}, {"id": None}, {"id": ["x"]}])
def test_an_answer_without_a_run_is_an_error(script: Script, url: str, answer: dict[str, object]) -> None:
    script.answers = [(200, {}, {}), (201, {}, answer)]
    with a_client(url, Clock()) as client, pytest.raises(PushError, match="names no run"):
        client.create_run("p", "r", "key")


def test_a_trace_is_streamed_whole_and_again_on_every_try(script: Script, url: str, tmp_path: Path) -> None:
    trace = tmp_path / "a b.json.gz"
    trace.write_bytes(bytes(range(256)) * 10_000)
    script.answers = [(503, {}, {}), (202, {}, {"job": {"id": "j"}})]
    with a_client(url, Clock()) as client:
        assert client.push_trace("7", trace) == {"job": {"id": "j"}}
    assert [s.path for s in script.seen] == ["/api/v1/runs/7/traces?filename=a%20b.json.gz"] * 2
    assert all(s.body == trace.read_bytes() for s in script.seen)
    assert len({s.headers["idempotency-key"] for s in script.seen}) == 1


@pytest.mark.parametrize("url", ["http://gpu.example", "http://10.0.0.7:8585", "http://127.0.0.1.example"])
def test_a_token_does_not_go_over_plain_http_to_another_machine(url: str) -> None:
    with pytest.raises(Refused, match="plain http"):
        Server(url, "rfl_ab_cd")
    assert Server(url, "rfl_ab_cd", insecure=True).url == url
    assert Server(url, None).url == url


@pytest.mark.parametrize(
    "url", ["https://gpu.example", "http://127.0.0.1:1", "http://localhost", "http://[::1]:1"]
)
def test_a_token_goes_over_https_and_to_this_machine(url: str) -> None:
    assert "rfl_ab_cd" not in repr(Server(url, "rfl_ab_cd"))


@pytest.mark.parametrize(
    "url", ["", "gpu.example", "ftp://gpu.example", "http://", "https://me:pw@gpu.example"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="not a server's address"):
        Server(url, None)


def test_the_page_of_a_run() -> None:
    assert Server("https://x.example/").page("a/b") == "https://x.example/runs/a%2Fb"


def test_backoff_doubles_to_five_minutes_with_full_jitter() -> None:
    """Bounds 1, 2, 4, ... 256, 300, 300: the largest draw of many agents is near them, the least near 0."""
    agents = [Backoff(random.Random(seed)) for seed in range(400)]
    for bound in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300):
        waits = [agent.wait_s() for agent in agents]
        assert max(waits) <= bound
        assert max(waits) > 0.98 * bound
        assert min(waits) < 0.02 * bound


def test_two_agents_do_not_return_together() -> None:
    first, second = Backoff(random.Random(1)), Backoff(random.Random(2))
    assert [first.wait_s() for _ in range(5)] != [second.wait_s() for _ in range(5)]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("Sun, 30 Nov 2025 10:53:35 GMT", 15.0),  # 1764500015
        ("Sun, 30 Nov 2025 10:53:00 GMT", 0.0),  # gone by
        ("soon", 0.0),
        ("-3", 0.0),
        ("9" * 400, 0.0),
        ("", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float) -> None:
    assert retry_after_s({"retry-after": value}, now=1_764_500_000.0) == seconds


def test_fates() -> None:
    assert {s: fate(s) for s in (200, 208, 401, 403, 413, 503)} == {
        200: Fate.DELIVERED,
        208: Fate.DELIVERED,
        401: Fate.UNAUTHORISED,
        403: Fate.UNAUTHORISED,
        413: Fate.TOO_LARGE,
        503: Fate.AGAIN,
    }
