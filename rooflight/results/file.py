"""One file of a run: read, analysed, and left with its compact result alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rooflight import readers
from rooflight.errors import NotATrace, ProtocolMismatch, Refused
from rooflight.readers.counters import read_counters
from rooflight.readers.limits import DEFAULT_LIMITS, Limits
from rooflight.results.rank import analyse_rank
from rooflight.results.result import RankResult
from rooflight.results.stages import Options, Stages
from rooflight.trace.counters import CounterFile
from rooflight.trace.execution import all_joined
from rooflight.trace.timeline import Timeline

T = TypeVar("T")


class FileTask(Struct, frozen=True):
    """A trace to analyse: ``path`` as the bytes that the system knows it by, and how; ``eager`` likewise a
    trace of the same program without CUDA graphs, ``counters`` files of hardware counters."""

    path: bytes
    options: Options = Options()
    limits: Limits = DEFAULT_LIMITS
    salvage: bool = False
    eager: bytes | None = None
    counters: tuple[bytes, ...] = ()

    @property
    def name(self) -> str:
        """The path in characters that any output can show."""
        return self.path.decode("utf-8", "backslashreplace")


class Analyst:
    """Analyses files one after another; what tasks share beside their recordings is read once."""

    def __init__(self) -> None:
        self._last: tuple[FileTask, Beside] | None = None

    def result(self, task: FileTask) -> RankResult:
        """The result of the rank in a file; a refusal names the file."""
        beside = self._beside(replace(task, path=b""))

        def result(path: str) -> RankResult:
            timeline = readers.read(path, limits=task.limits, salvage=task.salvage)
            return analyse_rank(Stages(timeline, task.options, beside.eager, beside.counters))

        return _named(task.path, result)

    def _beside(self, task: FileTask) -> Beside:
        if self._last is None or self._last[0] != task:
            self._last = task, Beside.of(task)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class Beside:
    """What was read beside the recordings: the one that kernels of graphs are named from, and counters."""

    eager: Timeline | None
    counters: tuple[CounterFile, ...]

    @classmethod
    def of(cls, task: FileTask) -> Self:
        """Reads them; a refusal names the file."""
        read = partial(readers.read, limits=task.limits, salvage=task.salvage)
        count = partial(read_counters, limits=task.limits)
        return cls(
            None if task.eager is None else _named(task.eager, read),
            tuple(_named(path, count) for path in task.counters),
        )


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
