"""Who is answered what: orders wait here until the processes that they mean have asked.

Nothing here does I/O but reading /proc: polls come in, texts go out, time is an argument (seconds since the
epoch), so that hours of it can be tried in a moment.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.capture import text
from agent.capture.wire import Poll
from agent.processes import Processes
from rooflight.captures import Captured, Order, Outcome

#: Kineto asks every 5 s; a process that was silent for three rounds does not ask any more.
SILENT_S = 16.0
#: How long processes of one order may take to hear of it: one round and a margin.
ROUND_S = 6.0
#: Between the end of a timed recording and its file: Kineto's own work, longer on a busy host.
WRITING_S = 60.0
MOST_PROCESSES = 4096


@dataclass(slots=True)
class Client:
    """A process that asks.  ``pid`` is the one seen from here, ``own`` its own namespace's."""

    pid: int
    own: int
    uid: int
    started: int
    job: int
    free: bool
    seen: float
    family: frozenset[int]


@dataclass(slots=True)
class Member:
    """A process of a capture."""

    client: Client
    token: str
    answer: Captured
    sent: float | None = None

    @property
    def open(self) -> bool:
        """Whether it may still write."""
        return self.answer.state in ("waiting", "ordered")

    def fail(self, problem: str) -> None:
        self.answer.state, self.answer.problem = "failed", f"process {self.client.pid} {problem}"


@dataclass(slots=True)
class Capture:
    """An order with its processes; ``start_ms`` is chosen once, for all of them."""

    order: Order
    made: float
    members: dict[int, Member] = field(default_factory=dict)
    absent: list[Captured] = field(default_factory=list)
    start_ms: int = 0
    problem: str | None = None

    @property
    def open(self) -> bool:
        """Whether a process may still write."""
        return self.problem is None and (not self.members or any(m.open for m in self.members.values()))

    @property
    def outcome(self) -> Outcome:
        rows = self.absent + [member.answer for member in self.members.values()]
        written = any(row.state == "written" for row in rows)
        state = "open" if self.open else "analysing" if written else "failed"
        problem = self.problem or ("; ".join(r.problem for r in rows if r.problem) or None)
        return Outcome(id=self.order.id, state=state, problem=problem, processes=rows)


class Coordinator:
    """Knows the processes that ask, and the orders that wait for them."""

    def __init__(self, processes: Processes | None = None, *, uid: int | None = None) -> None:
        self._processes = processes or Processes()
        self._uid = os.geteuid() if uid is None else uid
        self._clients: dict[int, Client] = {}
        self._captures: dict[str, Capture] = {}
        self.refused = 0

    @property
    def captures(self) -> list[Capture]:
        return list(self._captures.values())

    def clients(self, now: float) -> list[Client]:
        """The processes that have asked of late."""
        return [c for c in self._clients.values() if now - c.seen <= SILENT_S]

    def take(self, order: Order, now: float) -> Capture:
        """Accept an order; one of the same id is the same order."""
        known = self._captures.get(order.id)
        if known is not None:
            return known
        capture = self._captures[order.id] = Capture(order, now)
        self._forget(now)
        for client in self._meant(order, self.clients(now)):
            self._join(capture, client)
        capture.absent = [_absent(pid) for pid in order.pids if self._processes.started(pid) is None]
        if order.pids and len(capture.absent) == len(order.pids) and not capture.members:
            capture.problem = "; ".join(row.problem or "" for row in capture.absent)
        capture.start_ms = self._start_ms(capture, now)
        return capture

    def poll(self, poll: Poll, pid: int, uid: int, now: float) -> str:
        """The text for a process that asks, empty when there is nothing for it.

        Only the agent's own user is answered, and by root everybody: whoever orders a capture gets the
        shapes, names and frames of the program.
        """
        started = self._processes.started(pid) if pid > 0 else None
        if started is None or (self._uid not in (0, uid)):
            self.refused += 1
            return ""
        client = self._heard(poll, pid, uid, started, now)
        for capture in self._captures.values():
            if pid not in capture.members and capture.open and self._late(capture, client, now):
                self._join(capture, client)
            member = capture.members.get(pid)
            if member is not None and capture.open and member.answer.state == "waiting":
                return self._give(capture, member, now)
        return ""

    def unheard(self, pid: int) -> None:
        """The answer did not reach the process: it is given again when the process asks again."""
        for capture in self._captures.values():
            member = capture.members.get(pid)
            if member is not None and member.answer.state == "ordered":
                member.sent, member.answer.state = None, "waiting"

    def tick(self, now: float) -> None:
        """Give up on those that have ended, or that should have written by now."""
        for capture in self._captures.values():
            if not capture.open:
                continue
            if not capture.members:
                self._nobody(capture, now)
            for member in capture.members.values():
                if member.open:
                    self._give_up(capture, member, now)

    def written(self, capture: Capture, pid: int) -> None:
        """The trace of a process has been fetched."""
        capture.members[pid].answer.state = "written"

    def close(self, order_id: str) -> None:
        """The capture is over and told; it is not remembered any longer."""
        self._captures.pop(order_id, None)

    def _heard(self, poll: Poll, pid: int, uid: int, started: int, now: float) -> Client:
        known = self._clients.get(pid)
        if known is None or known.started != started:
            family = frozenset((pid, *self._processes.ancestors(pid)))
            known = Client(pid, poll.pids[0], uid, started, poll.job, poll.free, now, family)
            self._clients[pid] = known
        known.free, known.seen = poll.free, now
        return known

    def _meant(self, order: Order, clients: Iterable[Client]) -> list[Client]:
        return [c for c in clients if _means(order, c)]

    def _late(self, capture: Capture, client: Client, now: float) -> bool:
        """Whether a process that asks now still belongs: in the round after the order, no later, or its
        recording would not be of the same moment as the others'."""
        return (
            now - capture.made <= SILENT_S
            and not self._any_sent(capture, now)
            and _means(capture.order, client)
        )

    @staticmethod
    def _any_sent(capture: Capture, now: float) -> bool:
        return any(m.sent is not None and now - m.sent > ROUND_S for m in capture.members.values())

    def _join(self, capture: Capture, client: Client) -> None:
        command = self._processes.command(client.pid)
        answer = Captured(pid=client.pid, rank=self._processes.rank(client.pid), command=command)
        member = Member(client, secrets.token_hex(16), answer)
        capture.members[client.pid] = member
        other = self._capturing(client.pid, capture)
        if other is not None:
            member.fail(f"is being recorded already, by capture {other}")
        elif not client.free:
            member.fail("is profiling itself already: a process has one recording at a time")

    def _capturing(self, pid: int, but: Capture) -> str | None:
        for capture in self._captures.values():
            member = capture.members.get(pid)
            if capture is not but and member is not None and member.open:
                return capture.order.id
        return None

    def _give(self, capture: Capture, member: Member, now: float) -> str:
        if not member.client.free:
            member.fail("is profiling itself already: a process has one recording at a time")
            return ""
        if capture.start_ms and capture.start_ms < 1000 * (now + text.WARMUP_S):
            member.fail("asked too late for the moment at which the others are recorded")
            return ""
        member.sent, member.answer.state = now, "ordered"
        several = len(capture.members) > 1
        return text.config(capture.order, member.token, start_ms=capture.start_ms, several=several)

    def _start_ms(self, capture: Capture, now: float) -> int:
        """One moment for all: after each has asked once more, and has warmed up."""
        if capture.order.duration_ms is None or (len(capture.members) == 1 and capture.order.pids):
            return 0
        return int(1000 * (now + ROUND_S + text.WARMUP_S + 1))

    def _nobody(self, capture: Capture, now: float) -> None:
        if now - capture.made <= SILENT_S:
            return
        who = ", ".join(str(pid) for pid in capture.order.pids)
        what = f"process {who} has not asked" if who else "no process has asked"
        capture.problem = (
            f"{what} for {SILENT_S:.0f} s: it must be started with KINETO_USE_DAEMON=1, by the agent's user "
            "(root's agent serves all), and see the agent's socket (containers: KINETO_IPC_SOCKET_DIR)"
        )

    def _give_up(self, capture: Capture, member: Member, now: float) -> None:
        client = member.client
        if self._processes.started(client.pid) != client.started:
            member.fail("ended before its recording was written")
        elif member.sent is None and now - capture.made > SILENT_S + ROUND_S:
            member.fail(f"has not asked for {SILENT_S:.0f} s")
        elif member.sent is not None and now > self._deadline(capture, member.sent):
            member.fail("has written no recording in time")

    @staticmethod
    def _deadline(capture: Capture, sent: float) -> float:
        if capture.order.duration_ms is None:
            return sent + capture.order.timeout_s
        begin = max(sent + text.WARMUP_S, capture.start_ms / 1000)
        return begin + capture.order.duration_ms / 1000 + WRITING_S

    def _forget(self, now: float) -> None:
        """Bounded, whatever asks: those that were silent longest go first."""
        if len(self._clients) > MOST_PROCESSES:
            self._clients = {pid: c for pid, c in self._clients.items() if now - c.seen <= SILENT_S}


def _means(order: Order, client: Client) -> bool:
    if order.pids:
        return not client.family.isdisjoint(order.pids)
    return order.job is None or order.job == client.job


def _absent(pid: int) -> Captured:
    return Captured(pid=pid, state="failed", problem=f"process {pid}: no such process on this host")
