"""The loop that answers training processes and fetches what they recorded.

One thread waits on the sockets; orders come from other threads.  An answer must leave within 90 ms of the
question, so nothing slow happens here: recordings are analysed elsewhere (:mod:`agent.capture.reducing`).
"""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agent.capture import wire
from agent.capture.coordinator import Capture, Coordinator, Member
from agent.capture.fabric import Fabric, Heard
from agent.capture.folder import ORDER, OUTCOME, Manifest, Recorded, keep, trace_file
from agent.capture.traces import Room, discard, fetch, place
from agent.processes import Processes
from agent.store import make_folder, write
from rooflight.captures import Order, Outcome
from rooflight.errors import Refused

TICK_S = 0.2
#: While nothing is recorded there is only to hear whether to stop; a question wakes the loop.
IDLE_S = 1.0
SWEEP_S = 300.0
#: A timed recording of a minute with stacks stays below this.
LARGEST_TRACE = 2 << 30

#: Called once for each capture that is over, with its folder (which holds the traces, if any).
Finished = Callable[[Outcome, Path], None]


class OnDemand:
    """``serve`` runs until it is stopped; ``order`` and ``outcome`` may be called from any thread."""

    def __init__(
        self,
        fabrics: Sequence[Fabric],
        room: Room,
        finished: Finished,
        *,
        processes: Processes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._fabrics, self._room, self._finished, self._clock = fabrics, room, finished, clock
        self._processes = processes or Processes()
        self._coordinator = Coordinator(self._processes)
        self._lock = threading.Lock()
        self._swept = float("-inf")

    def order(self, order: Order) -> Outcome:
        """Begin a capture; :class:`Refused` where there is no room for it."""
        self._room.check()
        folder = self._room.folder / order.id
        make_folder(folder)
        write(folder / ORDER, msgspec.json.encode(order))
        with self._lock:
            return self._coordinator.take(order, self._clock()).outcome

    def clients(self) -> list[int]:
        """Pids of the processes that ask."""
        with self._lock:
            return [client.pid for client in self._coordinator.clients(self._clock())]

    def serve(self, stop: threading.Event) -> None:
        """Answer until ``stop`` is set."""
        with selectors.DefaultSelector() as selector:
            for fabric in self._fabrics:
                selector.register(fabric, selectors.EVENT_READ, fabric)
            while not stop.is_set():
                for key, _ in selector.select(TICK_S if self._busy() else IDLE_S):
                    self._listen(key.data)
                self.tick()

    def _busy(self) -> bool:
        with self._lock:
            return bool(self._coordinator.captures)

    def tick(self) -> None:
        """Fetch what is written, give up on what will not be, and tell of the captures that are over."""
        now = self._clock()
        with self._lock:
            self._sweep(now)
            for capture in self._coordinator.captures:
                self._fetch(capture)
            self._coordinator.tick(now)
            over = [c for c in self._coordinator.captures if not c.open]
            for capture in over:
                self._coordinator.close(capture.order.id)
        for capture in over:
            self._tell(capture)

    def _listen(self, fabric: Fabric) -> None:
        for heard in fabric.heard():
            said = wire.parse(heard.data)
            if isinstance(said, wire.Context):
                fabric.answer(heard, wire.welcome(1))
            elif isinstance(said, wire.Poll):
                with self._lock:
                    self._answer(fabric, heard, said)

    def _answer(self, fabric: Fabric, heard: Heard, poll: wire.Poll) -> None:
        text = self._coordinator.poll(poll, heard.pid, heard.uid, self._clock())
        if not fabric.answer(heard, wire.order(text)) and text:
            self._coordinator.unheard(heard.pid)

    def _fetch(self, capture: Capture) -> None:
        for pid, member in capture.members.items():
            if member.answer.state != "ordered":
                continue
            try:
                if fetch(member, place(member, self._processes), self._target(capture, pid), LARGEST_TRACE):
                    self._coordinator.written(capture, pid)
            except (Refused, OSError) as e:
                member.fail(f"has left a recording that cannot be used: {e}")

    def _target(self, capture: Capture, pid: int) -> Path:
        return trace_file(self._room.folder / capture.order.id, pid)

    def _tell(self, capture: Capture) -> None:
        for member in capture.members.values():
            if member.answer.state == "failed":
                self._discard(member)
        folder = self._room.folder / capture.order.id
        outcome = capture.outcome
        write(folder / OUTCOME, msgspec.json.encode(outcome))
        keep(folder, _manifest(capture))
        self._finished(outcome, folder)

    def _discard(self, member: Member) -> None:
        try:
            discard(place(member, self._processes))
        except OSError:
            return

    def _sweep(self, now: float) -> None:
        if now - self._swept >= SWEEP_S:
            self._swept = now
            for fabric in self._fabrics:
                fabric.sweep()


def _manifest(capture: Capture) -> Manifest:
    written = [m.answer for m in capture.members.values() if m.answer.state == "written"]
    rows = [Recorded(trace_file(Path(), row.pid).name, row.pid, row.rank) for row in written]
    return Manifest(rows, begins_at_step=capture.order.iterations is not None)
