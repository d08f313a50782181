"""Sending to a Rooflight server."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from agent.retry import Backoff, Fate, fate, retry_after_s
from rooflight.errors import MissingExtra, Refused, RooflightError

API = "/api/v1"
#: An answer is an id and a few fields; more than this is not ours.
LARGEST_ANSWER = 1 << 20
CHUNK = 1 << 20


class PushError(RooflightError):
    """The server did not take the message; ``again`` tells whether a later try may succeed."""

    def __init__(self, message: str, *, again: bool, status: int | None = None) -> None:
        super().__init__(message)
        self.again, self.status = again, status


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address and the token for it.

    A token is a password: over plain http it goes to this very machine only, unless ``insecure``.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    insecure: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise Refused("not a server's address", where=self.url, hint="give it as https://HOST[:PORT]")
        if self.token and parts.scheme == "http" and not self.is_loopback and not self.insecure:
            hint = "use https, or --insecure if the network between is trusted"
            raise Refused("a token is not sent over plain http", where=self.url, hint=hint)

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def page(self, run_id: str) -> str:
        """The address of a run's page."""
        return f"{self.url.rstrip('/')}/runs/{quote(run_id, safe='')}"


@dataclass(frozen=True, slots=True)
class Message:
    """A POST.  ``body`` gives the bytes anew for every try; ``key`` is the same for all of them."""

    path: str
    body: Callable[[], bytes | Iterator[bytes]]
    key: str
    kind: str = "application/json"


@dataclass
class Client:
    """``with Client(server) as client``; ``patience_s`` bounds the waiting for one message."""

    server: Server
    patience_s: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    draw: random.Random = field(default_factory=random.SystemRandom)

    def __enter__(self) -> Client:
        try:
            import httpx2
        except ImportError as e:
            raise MissingExtra("httpx2 is needed for sending: install rooflight-server[agent]") from e
        self._errors = httpx2.TransportError
        # A proxy of the environment is for the world outside, not for this machine.
        self._http = httpx2.Client(timeout=30.0, trust_env=not self.server.is_loopback)
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def create_run(self, project: str, name: str, key: str) -> str:
        """The id of a new run in ``project``, which is made when it does not exist."""
        try:
            self.post(_json("/projects", {"name": project}, f"{key}-project"))
        except PushError as e:
            # The project is there already, or this token may write to it but not make it.
            if e.status not in (403, 409):
                raise
        answer = self.post(_json(f"/projects/{quote(project, safe='')}/runs", {"name": name}, f"{key}-run"))
        run_id = answer.get("id")
        if not isinstance(run_id, str | int):
            raise PushError("the server's answer names no run", again=False)
        return str(run_id)

    def push_analysis(self, run_id: str, document: bytes) -> dict[str, Any]:
        """The Analysis of a run, as JSON bytes."""
        path = f"/runs/{quote(run_id, safe='')}/profiles"
        return self.post(Message(path, lambda: document, key_of(document)))

    def push_calibration(self, calibration: bytes) -> dict[str, Any]:
        """Measured ceilings of a device, as JSON bytes."""
        return self.post(Message("/calibrations", lambda: calibration, key_of(calibration)))

    def push_trace(self, run_id: str, trace: Path) -> dict[str, Any]:
        """A raw trace, streamed from its file."""
        path = f"/runs/{quote(run_id, safe='')}/traces?filename={quote(trace.name, safe='')}"
        with trace.open("rb") as file:
            key = f"rfl-{hashlib.file_digest(file, 'sha256').hexdigest()[:40]}"
        return self.post(Message(path, lambda: _chunks(trace), key, "application/octet-stream"))

    def post(self, message: Message) -> dict[str, Any]:
        """Send until delivered, refused or out of patience; :class:`PushError` tells which."""
        backoff, deadline = Backoff(self.draw), self.clock() + self.patience_s
        while True:
            least, error = self._try(message)
            if isinstance(error, dict):
                return error
            wait = backoff.wait_s(least)
            if not error.again or self.clock() + wait > deadline:
                raise error
            self.sleep(wait)

    def _try(self, message: Message) -> tuple[float, dict[str, Any] | PushError]:
        """One request: the answer, or the error and the least wait that the server asks for."""
        try:
            with self._http.stream(
                "POST",
                self.server.url.rstrip("/") + API + message.path,
                content=message.body(),
                headers=self._headers(message),
            ) as response:
                text = _read(response.iter_bytes())
        except self._errors as e:
            reason = str(e) or type(e).__name__
            return 0.0, PushError(f"no connection to {self.server.url}: {reason}", again=True)
        if fate(response.status_code) is Fate.DELIVERED:
            return 0.0, _object(text)
        return retry_after_s(response.headers, self.clock()), _error(
            self.server.url, response.status_code, text
        )

    def _headers(self, message: Message) -> dict[str, str]:
        headers = {
            "content-type": message.kind,
            "idempotency-key": message.key,
            # The server compares it with its own clock.
            "x-agent-time": f"{self.clock():.3f}",
        }
        if self.server.token:
            headers["authorization"] = f"Bearer {self.server.token}"
        return headers


def key_of(body: bytes) -> str:
    """An Idempotency-Key that a document keeps however often and from wherever it is sent."""
    return f"rfl-{hashlib.sha256(body).hexdigest()[:40]}"


def _json(path: str, value: Mapping[str, Any], key: str) -> Message:
    body = json.dumps(value).encode()
    return Message(path, lambda: body, key)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _read(chunks: Iterator[bytes]) -> bytes:
    text = b""
    for chunk in chunks:
        text += chunk
        if len(text) > LARGEST_ANSWER:
            return text[:LARGEST_ANSWER]
    return text


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _error(url: str, status: int, text: bytes) -> PushError:
    """What went wrong in words: the server's own (problem+json) where it gives them."""
    problem = _object(text)
    said = problem.get("detail") or problem.get("title") or ""
    what = {
        Fate.UNAUTHORISED: "does not accept the token",
        Fate.TOO_LARGE: "says that this is too large",
        Fate.AGAIN: "cannot take it now",
        Fate.REFUSED: "refuses it",
    }[fate(status)]
    words = f": {said}" if isinstance(said, str) and said else ""
    return PushError(f"{url} {what} ({status}){words}", again=fate(status) is Fate.AGAIN, status=status)
