"""Captures in words: what was ordered, how far it is, and what became of each process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.captures.schemas import CaptureIn, CaptureOut, ProcessOut
from app.pages.numbers import NB, count
from app.telemetry.schemas import HostOut
from app.times import iso

MAX_PROCESSES = 64
_MAX_PIDS = 6
_PENDING = ("queued", "taken", "analysing")
_STATES = {
    "queued": ("waits", "The agent of this host has not fetched it yet."),
    "taken": ("being recorded", "The agent has the order."),
    "analysing": ("being analysed", "The recording is there and is analysed."),
    "done": ("done", ""),
    "failed": ("failed", "Nothing was recorded."),
}
_PROCESSES = {
    "waiting": "has not asked whether to record itself yet",
    "ordered": "has the order",
    "written": "recorded",
    "failed": "not recorded",
}


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process; ``said`` is what became of it."""

    pid: int
    rank: str
    command: str
    said: str
    failed: bool


@dataclass(frozen=True, slots=True)
class CaptureLine:
    """One capture; ``said`` is its state in a word, ``text`` in a sentence."""

    capture: CaptureOut
    said: str
    text: str
    ordered: str
    pending: bool
    processes: list[ProcessLine]
    more: int
    created: str
    created_iso: str


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A host that reports, to choose from."""

    name: str
    label: str


def capture_lines(captures: list[CaptureOut]) -> list[CaptureLine]:
    """The captures in the order given."""
    return [_line(c) for c in captures]


def known_hosts(hosts: list[HostOut]) -> list[KnownHost]:
    """The hosts that report, by name."""
    return [KnownHost(h.name, f"{count(h.devices)} device{'' if h.devices == 1 else 's'}") for h in hosts]


def _line(c: CaptureOut) -> CaptureLine:
    said, text = _STATES[c.state]
    return CaptureLine(
        capture=c,
        said=said,
        text=_problem(c) or text,
        ordered=", ".join(_ordered(c.order)),
        pending=c.state in _PENDING,
        processes=[_process(p) for p in c.processes[:MAX_PROCESSES]],
        more=max(0, len(c.processes) - MAX_PROCESSES),
        created=c.created_at.strftime("%-d %b %Y, %H:%M:%S"),
        created_iso=iso(c.created_at),
    )


def _problem(c: CaptureOut) -> str:
    """Why it failed; "" where a process below says the same."""
    if not c.problem or any(p.problem == c.problem for p in c.processes):
        return ""
    return f"{c.problem[:1].upper()}{c.problem[1:].rstrip('.')}."


def _process(p: ProcessOut) -> ProcessLine:
    # A problem names the process, which its line does too.
    problem = (p.problem or "").removeprefix(f"process {p.pid}: ")
    rank = "" if p.rank is None else f"rank {p.rank}"
    return ProcessLine(p.pid, rank, p.command or "", problem or _PROCESSES[p.state], p.state == "failed")


def _ordered(order: CaptureIn) -> Iterator[str]:
    """What is recorded, of which processes, and with what in it."""
    if order.iterations is not None:
        yield f"{count(order.iterations)}{NB}step{'' if order.iterations == 1 else 's'}"
    else:
        yield f"{count(order.duration_ms)}{NB}ms"
    yield _whom(order)
    kinds = (
        ("shapes", order.shapes),
        ("stacks", order.stack),
        ("modules", order.modules),
        ("memory", order.memory),
    )
    yield from (name for name, there in kinds if there)
    if order.keep_trace:
        yield "trace kept"


def _whom(order: CaptureIn) -> str:
    if order.pids:
        pids = ", ".join(map(str, order.pids[:_MAX_PIDS]))
        left = len(order.pids) - _MAX_PIDS
        return (
            f"process{'' if len(order.pids) == 1 else 'es'} {pids}{f' and {left} more' if left > 0 else ''}"
        )
    return f"Slurm job {order.job}" if order.job is not None else "all that ask"
