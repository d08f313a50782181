"""A tiny Rooflight server for tests: answers from a script and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Seen:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FakeServer:
    """``answer`` gives status and JSON for a request; what came in is in ``seen``, in order."""

    answer: Callable[[Seen], tuple[int, dict[str, object]]]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def paths(self) -> list[str]:
        return [request.path.removeprefix("/api/v1") for request in self.seen]


def accepts(request: Seen) -> tuple[int, dict[str, object]]:
    """What the service answers when all is well; runs are numbered by their name."""
    path = request.path.removeprefix("/api/v1")
    if path == "/projects":
        return 201, {"id": "p-1", "name": json.loads(request.body)["name"]}
    if path.endswith("/runs"):
        return 201, {"id": "r-1", "name": json.loads(request.body)["name"]}
    if "/traces" in path:
        return 202, {"job": {"id": "j-1", "state": "queued"}}
    return 201, {}


@contextmanager
def running(fake: FakeServer) -> Iterator[FakeServer]:
    """Serve on a free port of this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            request = Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            fake.seen.append(request)
            status, value = fake.answer(request)
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
