"""One file of a run: read, analysed, and left with its compact result alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rooflight import readers
from rooflight.errors import NotATrace, ProtocolMismatch, Refused
from rooflight.readers.limits import DEFAULT_LIMITS, Limits
from rooflight.results.rank import analyse_rank
from rooflight.results.result import RankResult
from rooflight.results.stages import Options, Stages
from rooflight.trace.execution import all_joined
from rooflight.trace.timeline import Timeline

T = TypeVar("T")


class FileTask(Struct, frozen=True):
    """A trace to analyse: ``path`` as the bytes that the system knows it by, and how; ``eager`` likewise a
    trace of the same program without CUDA graphs."""

    path: bytes
    options: Options = Options()
    limits: Limits = DEFAULT_LIMITS
    salvage: bool = False
    eager: bytes | None = None

    @property
    def name(self) -> str:
        """The path in characters that any output can show."""
        return self.path.decode("utf-8", "backslashreplace")


class Analyst:
    """Analyses files one after another; the eager recording that tasks share is read once."""

    def __init__(self) -> None:
        self._last: tuple[FileTask, Timeline | None] | None = None

    def result(self, task: FileTask) -> RankResult:
        """The result of the rank in a file; a refusal names the file."""
        eager = self._eager(replace(task, path=b""))

        def result(path: str) -> RankResult:
            timeline = readers.read(path, limits=task.limits, salvage=task.salvage)
            return analyse_rank(Stages(timeline, task.options, eager))

        return _named(task.path, result)

    def _eager(self, task: FileTask) -> Timeline | None:
        if self._last is None or self._last[0] != task:
            self._last = task, read_eager(task)
        return self._last[1]


def read_eager(task: FileTask) -> Timeline | None:
    """The recording that kernels of graphs are named from, where there is one."""
    if task.eager is None:
        return None
    return _named(task.eager, partial(readers.read, limits=task.limits, salvage=task.salvage))


def read_run(tasks: Sequence[FileTask], executions: Sequence[bytes]) -> list[Timeline]:
    """The timelines of the tasks, read alike, each with the execution trace of its process if that is among
    the files ``executions``; a refusal names the file."""
    if not tasks:
        raise NotATrace(
            "an execution trace alone has no times",
            where=os.fsdecode(executions[0]),
            hint="give it beside the trace of its process",
        )
    limits = tasks[0].limits
    read = partial(readers.read, limits=limits, salvage=tasks[0].salvage)
    traces = [_named(t.path, read) for t in tasks]
    beside = [_named(path, partial(readers.read_execution, limits=limits)) for path in executions]
    return all_joined(traces, beside)


def _named(path: bytes, read: Callable[[str], T]) -> T:
    name = path.decode("utf-8", "backslashreplace")
    try:
        return read(os.fsdecode(path))
    except Refused as e:
        raise in_file(e, name) from e
    except ProtocolMismatch as e:
        raise ProtocolMismatch(f"{name}: {e}") from e


def in_file(e: Refused, name: str) -> Refused:
    """The refusal with the file's name in it, since of many one cannot tell which it was."""
    where = e.where if Path(name).name in e.where else f"{name}: {e.where}" if e.where else name
    return type(e)(e.title, where=where, hint=e.hint)
