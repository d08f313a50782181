"""Starting somebody's program so that it records a window of its steps, and is otherwise untouched.

Its output, its exit status and its signals are its own.  The folder :mod:`rooflight.inject` goes first on its
PYTHONPATH, and on that of every process that it starts: the ranks of a launcher record themselves too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import msgspec

import rooflight.inject
from agent.capture.folder import Manifest, Recorded
from agent.device import GPU_NODES
from rooflight.errors import Refused
from rooflight.inject.rooflight_window import NOTES, TRACE, Plan

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Notes(msgspec.Struct):
    """What a process says of its window."""

    pid: int
    rank: int | None = None
    world_size: int | None = None
    step_seconds: list[float] = []
    problem: str | None = None


def environment(environ: Mapping[str, str], plan: Plan, folder: Path) -> dict[str, str]:
    """The environment of a program that shall record itself."""
    ours = str(Path(rooflight.inject.__file__).parent)
    path = os.pathsep.join(part for part in (ours, environ.get("PYTHONPATH", "")) if part)
    window = json.dumps({"plan": asdict(plan), "folder": str(folder)})
    ours_alone = {"PYTHONPATH": path, "ROOFLIGHT_WINDOW": window}
    # Without a GPU Kineto has nothing to warn of, yet prints a line at each start and stop.
    quiet = {} if any(Path(node).exists() for node in GPU_NODES) else {"KINETO_LOG_LEVEL": "6"}
    return {**quiet, **environ, **ours_alone}


def launch(command: Sequence[str], plan: Plan, folder: Path) -> int:
    """Run ``command`` to its end; its exit status, 128 + N where signal N ended it, as a shell has it."""
    try:
        process = subprocess.Popen(command, env=environment(os.environ, plan, folder.absolute()))
    except OSError as e:
        raise Refused(f"cannot be started: {e.strerror}", where=command[0]) from e
    with _passing_on(process):
        status = process.wait()
    return status if status >= 0 else 128 - status


def recorded(folder: Path) -> tuple[Manifest, list[str]]:
    """The recordings that a program left, and what its processes say went wrong."""
    notes = {path.name.removesuffix(NOTES): _notes(path) for path in sorted(folder.glob(f"*{NOTES}"))}
    traces = {name: folder / f"{name}{TRACE}" for name in notes}
    rows = [Recorded(traces[n].name, note.pid, note.rank) for n, note in notes.items() if traces[n].exists()]
    problems = [f"process {note.pid}: {note.problem}" for note in notes.values() if note.problem]
    return Manifest(rows), problems


def _notes(path: Path) -> Notes:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Notes)
    except (OSError, msgspec.DecodeError) as e:
        raise Refused(f"the notes of a recording cannot be read: {e}", where=str(path)) from e


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals are the program's: Ctrl-C reaches it from the terminal, the others are handed on."""

    def hand_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in _FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
