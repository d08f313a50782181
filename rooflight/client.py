"""A client of the Rooflight service for scripts and training processes; needs no HTTP library.

RooflightError
└── ClientError
    ├── Unreachable      no answer, after all tries
    └── Rejected         the server answered that it will not: status, title, where

Every POST carries an Idempotency-Key, so that a request whose answer was lost can be sent again.
Redirects are not followed: the token is for one server.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import ssl
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from rooflight import __version__
from rooflight.bodies import Body, digest, file_body, json_body, piece, plain_body, zipped_body
from rooflight.calibration import Calibration
from rooflight.errors import Refused, RooflightError
from rooflight.protocol import SCHEMA_VERSION, Document, encode
from rooflight.proxy import is_loopback, proxy_of
from rooflight.retry import RETRIED_STATUS, Retry, retry_after_s

API = "/api/v1"
#: With every push: when it was sent by the clock of its host, in seconds since the epoch, and the
#: ``schema_version`` of the sender, so that a server too old for it can say so.
SENT_AT, SCHEMA = "Rooflight-Sent-At", "Rooflight-Schema"
_MAX_ANSWER_BYTES = 8 << 20
_FINISHED = ("done", "failed", "refused")
T = TypeVar("T")


class ClientError(RooflightError):
    """Something went wrong between this program and the server."""


class Unreachable(ClientError):  # noqa: N818
    """The server gave no answer that could be used, after all tries."""


class Rejected(ClientError):  # noqa: N818
    """The server's no.  ``status`` is the HTTP status; ``title`` and ``where`` are its words.

    ``retry_after_s`` is how long it asks to be left alone, ``None`` when it does not ask.
    """

    def __init__(
        self, status: int, title: str, where: str = "", hint: str = "", retry_after_s: float | None = None
    ) -> None:
        self.status, self.title, self.where, self.hint = status, title, where, hint
        self.retry_after_s = retry_after_s
        place, advice = (f" ({where})" if where else ""), (f". {hint}" if hint else "")
        super().__init__(f"the server answered {status}: {title}{place}{advice}")


class Problem(msgspec.Struct):
    """An error of the service (problem+json)."""

    title: str = ""
    status: int = 0
    detail: str = ""
    where: str = ""
    hint: str = ""


class Project(msgspec.Struct):
    id: str
    name: str


class Run(msgspec.Struct):
    id: str
    name: str | None = None


class Job(msgspec.Struct):
    """An analysis on the server."""

    id: str
    state: Literal["queued", "running", "done", "failed", "refused"] = "queued"
    run_id: str | None = None
    problem: Problem | None = None

    @property
    def finished(self) -> bool:
        return self.state in _FINISHED


class Received(msgspec.Struct):
    """What became of a push of telemetry.

    ``dropped`` are the batches given up by the agent that this push told of, by kind; ``skew_s`` is the
    server's clock less ours.
    """

    added: int = 0
    dropped: dict[str, int] | None = None
    skew_s: float | None = None


class Ordered(msgspec.Struct):
    """A capture that somebody ordered; ``order`` as it was sent, with the host and project."""

    id: str
    project: str
    order: dict[str, Any]


class _Orders(msgspec.Struct):
    items: list[Ordered]


class _Accepted(msgspec.Struct):
    job: Job


class _Arrived(msgspec.Struct):
    offset: int
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    data: bytes
    retry_after_s: float | None


@dataclass(slots=True)
class Client:
    """One server.  ``url`` is its address (http or https), ``token`` a bearer token or ``None``.

    A token is sent over plain http only to this machine, unless ``insecure``.  ``timeout_s`` bounds
    each wait for the network.  ``ca_file`` (PEM) are the authorities that vouch for the server, instead of
    the system's.  A proxy is taken from HTTPS_PROXY, HTTP_PROXY and NO_PROXY.  ``sleep``, ``draw`` (0 to 1)
    and ``clock`` (seconds since the epoch) are there for tests.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    insecure: bool = False
    timeout_s: float = 60.0
    retry: Retry = field(default_factory=Retry)
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random
    ca_file: str | None = None
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")
        host, scheme = _address(self.url)
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token):
            raise Refused("the token holds characters that no token has", hint="copy it again")
        if self.token and scheme == "http" and not self.insecure and not is_loopback(host):
            raise Refused(
                "will not send a token over plain http to another machine",
                where=self.url,
                hint="use https, or --insecure where the network is trusted",
            )

    def page(self, run: str) -> str:
        """The address of a run's page."""
        return f"{self.url}/runs/{quote(run, safe='')}"

    def create_project(self, name: str) -> Project:
        """Make a project, or find the one of that name."""
        return self._post("/projects", json_body({"name": name}), Project)

    def create_run(
        self,
        project: str,
        name: str | None = None,
        *,
        host: str | None = None,
        units_per_step: Mapping[str, float] | None = None,
        key: str | None = None,
    ) -> Run:
        """Make a run in a project (its id or name); ``units_per_step`` is what a step of its traces holds."""
        given = {"name": name, "host": host, "units_per_step": units_per_step or None}
        wanted = {k: v for k, v in given.items() if v is not None}
        return self._post(f"/projects/{quote(project, safe='')}/runs", json_body(wanted), Run, key=key)

    def upload_trace(
        self,
        run: str,
        path: str | os.PathLike[str],
        on_progress: Callable[[int, int], None] | None = None,
        *,
        key: str | None = None,
        name: str | None = None,
        start: int = 0,
    ) -> Job:
        """Stream a trace file to a run; the job that analyses it.

        ``on_progress(sent, total)`` is called with bytes, and starts again at 0 with each try.  ``name`` is
        what it is shown as; the trace begins at byte ``start`` of the file.
        """
        file = Path(path)
        shown = (name or file.name).encode("utf-8", "backslashreplace").decode("utf-8")
        target = f"/runs/{quote(run, safe='')}/traces?{urlencode({'filename': shown})}"
        return self._post(target, file_body(file, on_progress, start), _Accepted, key=key).job

    def upload_in_parts(
        self, run: str, path: str | os.PathLike[str], sha256: str, *, name: str | None = None, start: int = 0
    ) -> Job:
        """Send a trace file part by part, going on where an earlier try ended; the job that analyses it.

        ``sha256`` is that of the trace, which begins at byte ``start`` of the file; the server checks it, and
        each part's own.
        """
        file = Path(path)
        shown = (name or file.name).encode("utf-8", "backslashreplace").decode("utf-8")
        target = f"/runs/{quote(run, safe='')}/traces/parts/{sha256}"
        size = file.stat().st_size - start
        arrived = _decode(self._send("GET", target, None, {}), _Arrived)
        while arrived.job is None:
            query = urlencode({"offset": arrived.offset, "size": size, "filename": shown})
            data = piece(file, start + arrived.offset)
            try:
                arrived = _decode(
                    self._send("PUT", f"{target}?{query}", plain_body(data), digest(data)), _Arrived
                )
            except Rejected as e:
                # Somebody else sends the same, or what was there has been swept: look again, once.
                here = _decode(self._send("GET", target, None, {}), _Arrived) if e.status == 409 else arrived
                if here.offset == arrived.offset:
                    raise
                arrived = here
        return arrived.job

    def push_analysis(self, run: str, document: Document, *, key: str | None = None) -> dict[str, Any]:
        """Send an analysis made here; sending the same one again adds nothing."""
        data = encode(document)
        return self.push_profile(run, data, key=key or hashlib.sha256(data).hexdigest())

    def push_profile(self, run: str, data: bytes, *, key: str) -> dict[str, Any]:
        """As :meth:`push_analysis`, of an analysis that is JSON already."""
        return self._post(f"/runs/{quote(run, safe='')}/profiles", plain_body(data), dict[str, Any], key=key)

    def push_telemetry(self, data: bytes, *, key: str | None = None) -> Received:
        """Send windows or samples, the JSON of ``POST /telemetry``; they travel compressed."""
        return self._post("/telemetry", zipped_body(data), Received, key=key)

    def push_calibration(self, calibration: Calibration, *, key: str | None = None) -> dict[str, Any]:
        """Send the measured ceilings of a device."""
        data = encode(calibration)
        key = key or hashlib.sha256(data).hexdigest()
        return self._post("/calibrations", plain_body(data), dict[str, Any], key=key)

    def job(self, job: str) -> Job:
        """The state of a job."""
        return _decode(self._send("GET", f"/jobs/{quote(job, safe='')}", None, {}), Job)

    def orders(self, host: str, wait_s: int) -> list[Ordered]:
        """The captures that wait for the agent of ``host``, oldest first; the server holds its answer back
        for up to ``wait_s`` (at most 25) until there is one."""
        query = urlencode({"host": host, "wait": wait_s})
        return _decode(self._send("GET", f"/captures?{query}", None, {}), _Orders).items

    def answer_capture(self, capture: str, said: Mapping[str, Any]) -> None:
        """What became of a capture: state, problem, processes, run_id."""
        self._send("PUT", f"/captures/{quote(capture, safe='')}/outcome", json_body(dict(said)), {})

    def wait(self, job: Job | str, *, timeout_s: float = 3600.0) -> Job:
        """The job once it is done, failed or refused; :class:`Unreachable` when that takes longer."""
        ident = job if isinstance(job, str) else job.id
        waited, pause = 0.0, 0.2
        while not (now := self.job(ident)).finished:
            if waited >= timeout_s:
                raise Unreachable(f"job {ident} is still {now.state} after {waited:.0f} s; it goes on there")
            self.sleep(pause)
            waited, pause = waited + pause, min(2.0, pause * 1.5)
        return now

    def _post(self, target: str, body: Body, kind: type[T], *, key: str | None = None) -> T:
        return _decode(self._send("POST", target, body, {"Idempotency-Key": key or uuid.uuid4().hex}), kind)

    def _send(self, method: str, target: str, body: Body | None, headers: Mapping[str, str]) -> bytes:
        """The answer's body; tries again what may pass, raises what will not."""
        attempt = 1
        while True:
            try:
                answer = self._once(method, target, body, headers)
            except ssl.SSLCertVerificationError as e:
                raise Unreachable(f"the certificate of {self.url} is not trusted: {e.verify_message}") from e
            except (OSError, http.client.HTTPException, UnicodeError) as e:
                failure: ClientError = Unreachable(f"no answer from {self.url}: {_words(e)}")
                asked = None
            else:
                if 200 <= answer.status < 300:
                    return answer.data
                failure = _rejection(answer)
                asked = answer.retry_after_s
                if answer.status not in RETRIED_STATUS:
                    raise failure
            pause = self.retry.wait_s(attempt, asked, self.draw)
            if pause is None:
                raise failure
            self.sleep(pause)
            attempt += 1

    def _once(self, method: str, target: str, body: Body | None, headers: Mapping[str, str]) -> _Answer:
        connection = self._connection()
        try:
            address, more = self._through(urlsplit(self.url).path + API + target)
            connection.putrequest(method, address, skip_host="Host" in more)
            for name, value in {**more, **self._headers(body), **headers}.items():
                connection.putheader(name, value)
            connection.endheaders()
            _stream(connection, body)
            response = connection.getresponse()
            data = response.read(_MAX_ANSWER_BYTES + 1)
            if len(data) > _MAX_ANSWER_BYTES:
                raise http.client.HTTPException("an answer of more than 8 MiB")
            return _Answer(response.status, data, _patience(response))
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        proxy = proxy_of(self.url)
        if parts.scheme == "http":
            there = (host, port) if proxy is None else (proxy.host, proxy.port)
            return http.client.HTTPConnection(*there, timeout=self.timeout_s)
        context = _trust(self.ca_file)
        if proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=self.timeout_s, context=context)
        tunnel = http.client.HTTPSConnection(proxy.host, proxy.port, timeout=self.timeout_s, context=context)
        tunnel.set_tunnel(host, port, proxy.headers)
        return tunnel

    def _through(self, path: str) -> tuple[str, Mapping[str, str]]:
        """What to ask for, with which further headers: a proxy for plain http is told the whole address."""
        parts = urlsplit(self.url)
        proxy = proxy_of(self.url) if parts.scheme == "http" else None
        if proxy is None:
            return path, {}
        return f"http://{parts.netloc}{path}", {"Host": parts.netloc, **proxy.headers}

    def _headers(self, body: Body | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"rooflight/{__version__}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers |= {"Content-Type": body.kind, "Content-Length": str(body.size)}
            headers |= {SENT_AT: f"{self.clock():.6f}", SCHEMA: str(SCHEMA_VERSION)}
            headers |= {"Content-Encoding": body.encoding} if body.encoding else {}
        return headers


def _address(url: str) -> tuple[str, str]:
    """Host and scheme of a server's address, or :class:`Refused`."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise Refused("not the address of a server", where=url[:200], hint="as in https://rooflight.example")
    if parts.username or parts.password:
        raise Refused("a server's address holds no password", hint="give the token by itself")
    return parts.hostname or "", parts.scheme


@cache
def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as e:
        raise Refused(f"the certificates cannot be read: {e}", where=ca_file or "") from e


def _stream(connection: http.client.HTTPConnection, body: Body | None) -> None:
    for chunk in body.chunks() if body else ():
        try:
            connection.send(chunk)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses early (401, 413) answers and hangs up: its answer is what counts.
            return


def _decode(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as e:
        raise Unreachable(f"the answer is not that of a Rooflight server: {e}") from e


def _patience(response: http.client.HTTPResponse) -> float | None:
    """Seconds that the server asks for.  A date is counted from the server's own: ours may be wrong."""
    try:
        now = parsedate_to_datetime(response.getheader("Date", ""))
    except ValueError:
        return retry_after_s(response.getheader("Retry-After"))
    return retry_after_s(response.getheader("Retry-After"), now.replace(tzinfo=now.tzinfo or UTC))


def _rejection(answer: _Answer) -> Rejected:
    try:
        problem = msgspec.json.decode(answer.data, type=Problem)
    except msgspec.DecodeError:
        problem = Problem()
    title = problem.title or problem.detail or http.client.responses.get(answer.status, "no reason given")
    where, hint = problem.where[:200], problem.hint[:500]
    return Rejected(answer.status, title[:500], where, hint, answer.retry_after_s)


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
