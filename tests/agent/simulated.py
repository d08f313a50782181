"""A server and a clock for the agent's delivery: an hour passes in no time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.config import Config
from agent.delivery import Delivery
from agent.sender import ONCE, ServerSender
from agent.spool import Spool
from rooflight.client import Client, _Answer


@dataclass
class Asked:
    """One request, at a second of the simulated clock."""

    t: float
    target: str
    key: str
    body: bytes
    method: str = "POST"

    @property
    def told(self) -> Any:
        """Its JSON."""
        return json.loads(self.body)


Answer = tuple[int, dict[str, Any]] | tuple[int, dict[str, Any], float]


@dataclass
class World:
    """``answer`` gives status and JSON (and a Retry-After in seconds) for a request, or raises
    :class:`OSError` for none.  ``settings`` may be changed at any time."""

    folder: Path
    answer: Callable[[Asked], Answer]
    draw: Callable[[], float]
    limit_bytes: int = 1 << 20
    now: float = 0.0
    epoch: float = 1_764_500_000.0
    asked: list[Asked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = Config("http://127.0.0.1:1", "rfl_a_b", "default", self.folder)
        self.start()

    def start(self) -> None:
        """A new process of the agent over the same folder."""
        self.spool = Spool(self.folder, limit_bytes=self.limit_bytes, note=self.notes.append)
        sender = ServerSender(lambda: self.settings, self._client)
        self.delivery = Delivery(self.spool, sender, self.notes.append, draw=self.draw)

    def crash(self) -> None:
        """The process ends without a word and is started again."""
        self.spool.close()
        self.start()

    def renew(self, token: str) -> None:
        self.settings = replace(self.settings, token=token)

    def run(self, until: float) -> None:
        """Step until the clock shows ``until``."""
        while self.now < until:
            wait = self.delivery.step(self.now)
            assert wait >= 0
            self.waits.append(wait)
            self.now += wait

    def requests(self, key: str) -> list[Asked]:
        """Those for a batch and its parts."""
        return [a for a in self.asked if a.key.partition("/")[0] == key]

    def _client(self, settings: Config) -> Client:
        world = self

        class Simulated(Client):
            def _once(self, method: str, target: str, body: Any, headers: Any) -> _Answer:
                data = b"".join(body.chunks()) if body else b""
                data = gzip.decompress(data) if body and body.encoding else data
                asked = Asked(world.now, target, headers.get("Idempotency-Key", ""), data, method)
                world.asked.append(asked)
                status, answer, *after = world.answer(asked)
                return _Answer(status, json.dumps(answer).encode(), after[0] if after else None)

        assert settings.server is not None
        return Simulated(settings.server, settings.token, retry=ONCE, clock=lambda: world.epoch + world.now)


def windows(n: int, start: float = 0.0) -> bytes:
    """A push of ``n`` windows."""
    rows = [
        {"uuid": "GPU-1", "t_start": start + i, "t_end": start + i + 1, "util_pct": None} for i in range(n)
    ]
    return json.dumps({"windows": rows}).encode()


def scripted(answers: dict[str, Iterator[Any]]) -> Callable[[Asked], Answer]:
    """The answers of each batch in turn: a status, or a function of the request."""

    def answer(asked: Asked) -> Answer:
        what = next(answers[asked.key])
        return what(asked) if callable(what) else (what, {})

    return answer
