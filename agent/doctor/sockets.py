"""The socket that training processes ask: who holds it, and who asks."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.capture import wire
from agent.capture.fabric import LONGEST, NAME, Fabric
from agent.doctor.rows import Row
from agent.processes import Processes
from rooflight.errors import Refused

#: torch asks every 5 s.
LISTEN_S = 6.0
_OURS = ("rooflight-agent", "agent.cli")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a socket: ``pid`` ``None`` where that is not ours to see."""

    pid: int | None
    command: str

    @property
    def is_agent(self) -> bool:
        return any(name in self.command for name in _OURS)


def holder(folder: Path | None, processes: Processes) -> Holder | None:
    """Who has the abstract socket, or the one in ``folder``; ``None``: it is free."""
    inode = _inode(_unix(processes.root), None if folder is None else str(folder / NAME))
    if inode is None:
        return None
    pid = processes.holding(f"socket:[{inode}]")
    told = "another user's process" if pid is None else processes.command(pid) or f"process {pid}"
    return Holder(pid, told)


def socket(folder: Path | None, processes: Processes) -> Iterator[Row]:
    """One socket: free, an agent's, or taken."""
    name = f"abstract socket {NAME}" if folder is None else f"socket {folder / NAME}"
    found = holder(folder, processes)
    if found is None:
        yield from _usable(folder, name)
    elif found.is_agent:
        yield Row("captures", "ok", f"{name}: an agent answers (pid {found.pid})")
    else:
        pid = "" if found.pid is None else f" (pid {found.pid})"
        fix = "One program answers a host's processes: stop it, or set --socket-dir here and in the training"
        yield Row("captures", "problem", f"{name} is held by {found.command}{pid}", fix)


def listen(folder: Path | None, processes: Processes, seconds: float = LISTEN_S) -> Iterator[Row]:
    """Who asks within the time; they are told that there is nothing to do."""
    try:
        fabric = Fabric(folder)
    except Refused as e:
        yield Row(
            "captures", "warning", f"not listened: {e.title}", "Stop the agent, or look at its /metrics"
        )
        return
    with fabric:
        asked = _polls(fabric, time.monotonic() + seconds)
    if not asked:
        yield Row(
            "captures", "warning", f"nobody asked in {seconds:g} s", "Set KINETO_USE_DAEMON=1 for torch"
        )
    for pid in sorted(asked):
        told = processes.command(pid) or "a process of another namespace"
        yield Row("captures", "ok", f"process {pid} asks: {told}")


def _polls(fabric: Fabric, end: float) -> set[int]:
    asked: set[int] = set()
    while (left := end - time.monotonic()) > 0:
        select.select([fabric], [], [], left)
        for heard in fabric.heard():
            said = wire.parse(heard.data)
            if isinstance(said, wire.Poll):
                asked.add(heard.pid or said.pids[0])
                fabric.answer(heard, wire.order(""))
            elif said is not None:
                fabric.answer(heard, wire.welcome(1))
    return asked


def _usable(folder: Path | None, name: str) -> Iterator[Row]:
    if folder is None:
        yield Row("captures", "ok", f"{name} is free")
    elif len(os.fsencode(folder)) > LONGEST:
        yield Row("captures", "problem", f"{folder} is longer than {LONGEST} bytes", "Choose a shorter path")
    elif not _writable(folder):
        yield Row("captures", "problem", f"{folder} may not be written", "Give it to the agent's user")
    elif (folder / NAME).exists():
        yield Row("captures", "ok", f"{name} was left by a killed agent; the next one replaces it")
    else:
        yield Row("captures", "ok", f"{name} is free")


def _writable(folder: Path) -> bool:
    """Whether a file can be made in ``folder``, or the folder itself."""
    there = next(p for p in (folder, *folder.parents) if p.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _unix(proc: Path) -> list[list[str]]:
    try:
        text = (proc / "net/unix").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.split(maxsplit=7) for line in text.splitlines()[1:]]


def _inode(rows: list[list[str]], path: str | None) -> str | None:
    """The socket's number.  The kernel writes the zeros of an abstract name as @."""
    for row in rows:
        if len(row) < 8:
            continue
        name = row[7]
        if name == path or (path is None and name.startswith("@") and name.strip("@") == NAME):
            return row[6]
    return None
