"""How long our threads were ready to run and had no CPU: what tells a disturbed sample from a quiet one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

TASKS = Path("/proc/self/task")


class Waits:
    """The scheduler's account of each of our threads (Linux: ``schedstat``, its second figure, ns).

    The files stay open, since a look costs some microseconds then and must fit between two samples.
    Where the kernel does not tell, :meth:`look` is empty and nothing is known.
    """

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._files: dict[str, int] = {}

    def __enter__(self) -> Waits:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def refresh(self) -> None:
        """Take up threads that were started since, as torch does at its first operator on several."""
        try:
            names = {task.name for task in self._tasks.iterdir()}
        except OSError:
            names = set()
        if names == set(self._files):
            return
        self._close()
        for name in names:
            with suppress(OSError):  # it ended in the meantime, or the kernel keeps no account
                self._files[name] = os.open(self._tasks / name / "schedstat", os.O_RDONLY)

    def look(self) -> tuple[int, ...]:
        """Nanoseconds that each thread has waited since its start."""
        return tuple(_waited(file) for file in self._files.values())

    def _close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files = {}


def longest(before: tuple[int, ...], after: tuple[int, ...]) -> float | None:
    """Seconds that the thread which waited longest did so between two looks; ``None`` when unknown.

    The slowest thread of an operator is the operator's time, so that others' waits do not add up.
    """
    waited = [b - a for a, b in zip(before, after, strict=True)]
    return max(waited) / 1e9 if waited else None


def _waited(file: int) -> int:
    try:
        return int(os.pread(file, 100, 0).split()[1])
    except (OSError, ValueError, IndexError):
        return 0  # the thread has ended: it waits no more
