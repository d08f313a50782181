"""Captures that are over: analysed in a child, put into the spool, and told to the server.

One at a time: the training on this host goes first.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from agent.batch import Address
from agent.capture.folder import ORDER, manifest_of
from agent.capture.reducing import Reducing
from agent.loops.orders import told
from agent.spool import Spool
from rooflight.captures import Order, Outcome
from rooflight.client import Client, ClientError
from rooflight.errors import Refused, RooflightError

LOOK_S = 0.5
#: The server is told again of what it has not heard, at every so many seconds.
TELL_S = 5.0
DEFAULT_PROJECT = "default"


@dataclass
class AnalysingLoop:
    """``finished`` is called when a capture is over (by :class:`agent.capture.ondemand.OnDemand`)."""

    client: Callable[[], Client]
    spool: Spool
    reducing: Callable[[], Reducing]
    host: str
    note: Callable[[str], None]
    done: int = 0
    failed: int = 0
    _waiting: queue.SimpleQueue[tuple[Outcome, Path]] = field(default_factory=queue.SimpleQueue)
    #: What the server is to be told, by capture; an answer of "done" waits until the profile is delivered.
    _untold: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def finished(self, outcome: Outcome, folder: Path) -> None:
        """A capture is over; its folder holds the recordings."""
        self._waiting.put((outcome, folder))

    def __call__(self, stop: threading.Event) -> None:
        rest = 0.0
        while not stop.is_set():
            try:
                outcome, folder = self._waiting.get(timeout=LOOK_S)
            except queue.Empty:
                rest += LOOK_S
                if self._untold and rest >= (LOOK_S if self._delivered() else TELL_S):
                    rest = 0.0
                    self._tell()
                continue
            self._untold[outcome.id] = self._settle(outcome, folder)
            self._tell()

    def _delivered(self) -> bool:
        return any(_key(capture) not in self.spool for capture in self._untold)

    def _settle(self, outcome: Outcome, folder: Path) -> dict[str, Any]:
        if outcome.state == "failed":
            self.failed += 1
            self.note(f"capture {outcome.id} failed: {outcome.problem}")
            return told(outcome)
        try:
            run = self._analyse(outcome, folder)
        except RooflightError as e:
            self.failed += 1
            self.note(f"capture {outcome.id} cannot be analysed: {e}")
            return told(outcome, state="failed", problem=f"the recording cannot be analysed: {e}")
        self.done += 1
        self.note(f"capture {outcome.id} is recorded and analysed: {folder}")
        return told(outcome, state="done", run_id=run)

    def _analyse(self, outcome: Outcome, folder: Path) -> str | None:
        order = _order_of(folder)
        self._say(outcome.id, told(outcome, state="analysing"))
        document = self.reducing().analyse(folder)
        run = self._run(order)
        name = order.run or f"capture {outcome.id}"
        address = Address(project=order.project or DEFAULT_PROJECT, run=name, host=self.host, run_id=run)
        if not self.spool.put("profile", document, _key(outcome.id), address=address):
            raise Refused("the agent's queue has no room for the analysis", where=str(document))
        if order.keep_trace:
            for row in manifest_of(folder).recordings:
                key = f"{_key(outcome.id)}/{row.pid}"
                self.spool.put("trace", folder / row.file, key, address=_raw(address, row.file))
        return run

    def _run(self, order: Order) -> str | None:
        """The run is made now, so that the answer can name it; without a server the spool makes it later."""
        try:
            client = self.client()
            project = client.create_project(order.project or DEFAULT_PROJECT)
            name = order.run or f"capture {order.id}"
            return client.create_run(project.name, name, host=self.host, key=f"{_key(order.id)}/run").id
        except (ClientError, Refused):
            return None

    def _tell(self) -> None:
        for capture, said in list(self._untold.items()):
            if said["state"] == "done" and _key(capture) in self.spool:
                continue
            if self._say(capture, said):
                del self._untold[capture]

    def _say(self, capture: str, said: Mapping[str, Any]) -> bool:
        """Whether the server need not be told again: it heard, or knows of no such capture."""
        try:
            self.client().answer_capture(capture, said)
        except (ClientError, Refused) as e:
            return getattr(e, "status", 0) in (404, 409, 422)
        return True


def _key(capture: str) -> str:
    return f"capture-{capture}"


def _raw(address: Address, file: str) -> Address:
    return msgspec.structs.replace(address, run=f"{address.run} (raw trace)", run_id=None, filename=file)


def _order_of(folder: Path) -> Order:
    return msgspec.json.decode((folder / ORDER).read_bytes(), type=Order)
