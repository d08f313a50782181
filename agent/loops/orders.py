"""Orders for captures, fetched from the server by a long poll."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agent.capture.ondemand import OnDemand
from rooflight.captures import Order, Outcome, read_order
from rooflight.client import Client, ClientError, Ordered
from rooflight.errors import Refused

#: How long the server holds its answer back; the wait for the network is longer.
WAIT_S = 20
TIMEOUT_S = 35.0
#: After a failed question.
REST_S = 15.0
_ADDRESS = ("host", "project", "run")


@dataclass
class OrdersLoop:
    """``client`` makes a client by the settings of that moment; ``ordered`` remembers what was taken, so that
    an order that the server still shows as waiting is not taken twice."""

    client: Callable[[], Client]
    ondemand: OnDemand
    host: str
    note: Callable[[str], None]
    ordered: dict[str, Order] = field(default_factory=dict)
    problem: str | None = None

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                client = self.client()
                orders = client.orders(self.host, WAIT_S)
                self.problem = None
            except (ClientError, Refused) as e:
                self._rest(stop, str(e))
                continue
            for found in orders:
                if found.id not in self.ordered:
                    self._take(client, found)

    def _rest(self, stop: threading.Event, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self.note(f"no orders are fetched: {problem}")
        stop.wait(REST_S)

    def _take(self, client: Client, found: Ordered) -> None:
        """The server learns of it before the processes do: a crash in between records nothing twice."""
        try:
            order = _order(found)
            client.answer_capture(found.id, {"state": "taken"})
            self.ordered[found.id] = order
            self.ondemand.order(order)
        except Refused as e:
            self.ordered[found.id] = Order(id=found.id, iterations=1)
            _answer(client, found.id, {"state": "failed", "problem": str(e)}, self.note)
        except ClientError as e:
            self.note(f"the order {found.id} was not taken: {e}")


def told(outcome: Outcome, **more: Any) -> dict[str, Any]:
    """An outcome in the server's words."""
    words = {"processes": msgspec.to_builtins(outcome.processes), "problem": outcome.problem}
    return {**words, "state": outcome.state, **more}


def _answer(client: Client, capture: str, said: Mapping[str, Any], note: Callable[[str], None]) -> None:
    try:
        client.answer_capture(capture, said)
    except ClientError as e:
        note(f"the server was not told of capture {capture}: {e}")


def _order(found: Ordered) -> Order:
    given = {k: v for k, v in found.order.items() if k not in _ADDRESS and v is not None}
    run = found.order.get("run")
    return read_order({**given, "id": found.id, "project": found.project, "run": run})
