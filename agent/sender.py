"""The batches' way over HTTP, one try each, by the settings as they are at that moment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.config import Config
from agent.pushes import addressed
from agent.spool import Batch
from rooflight.client import Client, Received, Rejected
from rooflight.errors import Refused
from rooflight.retry import Retry

#: The delivery waits; a try is a try.
ONCE = Retry(tries=1)
_EMPTY = b'{"windows":[]}'


def client_of(settings: Config) -> Client:
    """A client that tries once; :class:`~rooflight.errors.Refused` without a server."""
    if settings.server is None:
        raise Refused("no server is set", hint="--server, ROOFLIGHT_SERVER, or server in agent.toml")
    return Client(settings.server, settings.token, retry=ONCE, ca_file=settings.ca_file)


@dataclass
class ServerSender:
    """``settings`` reads the settings anew, so that a new token in the file is found by itself."""

    settings: Callable[[], Config]
    make: Callable[[Config], Client] = client_of
    _used: Config | None = None
    _client: Client | None = field(default=None, repr=False)

    def credential(self) -> str:
        """A digest of server and token; :class:`~rooflight.errors.Refused` when these cannot be used."""
        now = self.settings()
        if self._client is None or now != self._used:
            self._client, self._used = self.make(now), now
        return hashlib.sha256(f"{now.server} {now.token}".encode("utf-8", "replace")).hexdigest()

    def send(self, batch: Batch, dropped: Mapping[str, int]) -> Mapping[str, int]:
        """Send a batch to where it belongs; the run is made first where it must be."""
        if batch.kind == "telemetry":
            return self._telemetry(batch, dropped)
        client = self._open()
        run = batch.head.address.run_id or self._run(batch)
        if batch.kind == "profile":
            client.push_profile(run, batch.body(), key=batch.key)
        else:
            name = batch.head.address.filename
            client.upload_in_parts(run, batch.path, batch.head.sha256, name=name, start=batch.start())
        return {}

    def probe(self) -> None:
        """A push of nothing."""
        self._open().push_telemetry(_EMPTY)

    def _telemetry(self, batch: Batch, dropped: Mapping[str, int]) -> Mapping[str, int]:
        client = self._open()
        body = addressed(batch.body(), client.clock(), dropped)
        received: Received = client.push_telemetry(body, key=batch.key)
        # A server that does not repeat what it counted has counted what it was told.
        return dropped if received.dropped is None else received.dropped

    def _run(self, batch: Batch) -> str:
        """The run of a batch: made under a key of the batch's own, so that it is made once."""
        client, address = self._open(), batch.head.address
        try:
            return client.create_run(
                address.project, address.run, host=address.host, key=f"{batch.key}/run"
            ).id
        except Rejected as e:
            if e.status != 404:
                raise
        client.create_project(address.project)
        return client.create_run(address.project, address.run, host=address.host, key=f"{batch.key}/run").id

    def _open(self) -> Client:
        if self._client is None:
            self._used = self.settings()
            self._client = self.make(self._used)
        return self._client
