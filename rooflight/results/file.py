"""One file of a run: read, analysed, and left with its compact result alone."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from rooflight import readers
from rooflight.errors import ProtocolMismatch, Refused
from rooflight.readers.limits import DEFAULT_LIMITS, Limits
from rooflight.results.rank import analyse_rank
from rooflight.results.result import RankResult
from rooflight.results.stages import Options, Stages


class FileTask(Struct, frozen=True):
    """A trace to analyse: ``path`` as the bytes that the system knows it by, and how."""

    path: bytes
    options: Options = Options()
    limits: Limits = DEFAULT_LIMITS
    salvage: bool = False

    @property
    def name(self) -> str:
        """The path in characters that any output can show."""
        return self.path.decode("utf-8", "backslashreplace")


def analyse_file(task: FileTask) -> RankResult:
    """The result of the rank in a file; a refusal names the file."""
    try:
        timeline = readers.read(os.fsdecode(task.path), limits=task.limits, salvage=task.salvage)
        return analyse_rank(Stages(timeline, task.options))
    except Refused as e:
        raise in_file(e, task.name) from e
    except ProtocolMismatch as e:
        raise ProtocolMismatch(f"{task.name}: {e}") from e


def in_file(e: Refused, name: str) -> Refused:
    """The refusal with the file's name in it, since of many one cannot tell which it was."""
    where = e.where if Path(name).name in e.where else f"{name}: {e.where}" if e.where else name
    return type(e)(e.title, where=where, hint=e.hint)
