"""When the batches of the spool are sent, and what becomes of each: decided here, done by a sender.

| the server | the batch | the queue |
|---|---|---|
| takes it | is removed | goes on |
| no answer, 408, 425, 429, 500, 502, 503, 504 | stays | waits: doubling, full jitter, Retry-After at least |
| 413 | telemetry is halved, else set apart | goes on |
| 401, 403 | stays | stops; a probe without data at most once a minute, until the token changes |
| 426, or a redirect | stays | stops likewise: this program or its address is wrong, not the batch |
| any other no | is set apart with the reason | goes on |

Time is what :meth:`Delivery.step` is told, so that an hour's outage is simulated in no time.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from agent.batch import CorruptError
from agent.pushes import halved
from agent.spool import Batch, Spool
from rooflight.client import ClientError, Rejected
from rooflight.errors import Refused, RooflightError
from rooflight.retry import RETRIED_STATUS, Retry

#: How long to wait when nothing waits to be sent.
IDLE_S = 5.0
PROBE_S = 60.0
#: While the server says no to the token, a new one is looked for this often.
LOOK_S = 5.0
#: A batch that the server fails on this often in a row lets the others pass for :data:`REST_S`.
MOST_FAILURES = 5
REST_S = 300.0
LONGEST_S = 86_400.0
ENDLESS = Retry(tries=sys.maxsize, base_s=1.0, cap_s=300.0, patience_s=float("inf"))


class Sender(Protocol):
    """The way to the server; :class:`agent.sender.ServerSender` is one.

    Both calls raise :class:`~rooflight.client.ClientError` for a no, one try each.
    """

    def credential(self) -> str:
        """Names server and token: another one is worth another try."""

    def send(self, batch: Batch, dropped: Mapping[str, int]) -> Mapping[str, int]:
        """Send a batch, and how many were dropped; what of these the server has counted."""

    def probe(self) -> None:
        """Ask whether a push would be allowed, without one."""


class Verdict(Enum):
    """What a failed push means."""

    RETRY = "try again later"
    SPLIT = "too large"
    STOP = "nothing can be sent"
    APART = "this batch will never be taken"


def verdict_of(error: ClientError) -> Verdict:
    """The law of the table above."""
    if not isinstance(error, Rejected) or error.status in RETRIED_STATUS:
        return Verdict.RETRY
    if error.status == 413:
        return Verdict.SPLIT
    if error.status in (401, 403, 426) or 300 <= error.status < 400:
        return Verdict.STOP
    return Verdict.APART


@dataclass
class Delivery:
    """Sends the spool, one batch a step.  ``draw`` gives 0 to 1 for the jitter."""

    spool: Spool
    sender: Sender
    note: Callable[[str], None]
    draw: Callable[[], float] = random.random
    retry: Retry = ENDLESS
    _tries: int = 0
    _not_before: float = float("-inf")
    _stopped: bool = False
    _probe_at: float = 0.0
    _allowed: bool = False
    _said: str = ""
    _credential: str | None = field(default=None, repr=False)
    _failures: dict[str, int] = field(default_factory=dict)
    _resting: dict[str, float] = field(default_factory=dict)

    @property
    def stopped(self) -> bool:
        """Whether the server lets nothing in, so that the queue only grows."""
        return self._stopped

    def step(self, now: float) -> float:
        """Do what is due at ``now``, in seconds of a clock that never goes back; how long to wait then."""
        if not self._stopped and not len(self.spool):
            return IDLE_S
        try:
            credential = self.sender.credential()
        except Refused as e:
            self._say(f"nothing is sent: {e}")
            return LOOK_S
        if credential != self._credential:
            self._credential = credential
            self._go_on()
        if self._stopped:
            return self._look(now)
        if now < self._not_before:
            return self._not_before - now
        batch = self._next(now)
        if batch is None:
            return IDLE_S
        try:
            return self._send(batch, now)
        finally:
            self.spool.release()

    def _next(self, now: float) -> Batch | None:
        self._resting = {k: t for k, t in self._resting.items() if t > now and k in self.spool}
        return self.spool.next(skip=self._resting)

    def _send(self, batch: Batch, now: float) -> float:
        try:
            acknowledged = self.sender.send(batch, self.spool.dropped())
        except CorruptError as e:
            self.spool.quarantine(batch, f"corrupt: {e}")
        except OSError as e:
            self.spool.quarantine(batch, f"cannot be read: {e.strerror}")
        except Refused as e:
            # Of our settings: a proxy or a certificate that cannot be used.
            return self._wait(batch, e, now)
        except ClientError as e:
            return self._failed(batch, e, now)
        else:
            self.spool.delivered(batch, acknowledged)
            self._tries, self._said, self._allowed = 0, "", False
            self._failures.clear()
        return 0.0

    def _failed(self, batch: Batch, error: ClientError, now: float) -> float:
        match verdict_of(error):
            case Verdict.RETRY:
                return self._wait(batch, error, now)
            case Verdict.STOP:
                return self._stop(batch, error, now)
            case Verdict.SPLIT if batch.kind == "telemetry" and (halves := halved(batch.body())):
                return 0.0 if self.spool.split(batch, halves) else self._wait(batch, error, now)
            case _:
                self.spool.quarantine(batch, str(error), getattr(error, "status", None))
                return 0.0

    def _wait(self, batch: Batch, error: RooflightError, now: float) -> float:
        self._tries += 1
        asked = error.retry_after_s if isinstance(error, Rejected) else None
        pause = self.retry.wait_s(self._tries, asked, self.draw)
        pause = min(LONGEST_S, self.retry.cap_s if pause is None else pause)
        self._not_before = now + pause
        self._say(f"not delivered, {len(self.spool)} kept: {error}")
        if isinstance(error, Refused) or (isinstance(error, Rejected) and error.status == 500):
            self._count_failure(batch, now)
        return pause

    def _count_failure(self, batch: Batch, now: float) -> None:
        # A batch on which the server fails must not hold up the others for ever.
        failures = self._failures[batch.key] = self._failures.get(batch.key, 0) + 1
        if failures >= MOST_FAILURES:
            self._resting[batch.key] = now + REST_S

    def _stop(self, batch: Batch, error: ClientError, now: float) -> float:
        if self._allowed:
            # The server allows pushes by this token, but not this one: the others pass.
            self._allowed, self._resting[batch.key] = False, float("inf")
            self.note(f"{batch.path.name} waits for another token: {error}")
            return 0.0
        self._stopped, self._probe_at = True, now + PROBE_S
        self._say(f"nothing is sent, {len(self.spool)} kept: {error}")
        return min(LOOK_S, PROBE_S)

    def _go_on(self) -> None:
        self._stopped, self._tries, self._not_before = False, 0, float("-inf")
        self._allowed = False
        self._resting.clear()

    def _look(self, now: float) -> float:
        if now < self._probe_at:
            return min(LOOK_S, self._probe_at - now)
        self._probe_at = now + PROBE_S
        try:
            self.sender.probe()
        except (ClientError, Refused) as e:
            self._say(f"nothing is sent, {len(self.spool)} kept: {e}")
            return LOOK_S
        self._go_on()
        self._allowed = True
        return 0.0

    def _say(self, text: str) -> None:
        """Note what is new; the same words over an hour's outage are noted once."""
        told = text.partition(":")[2]
        if told != self._said:
            self._said = told
            self.note(text)
