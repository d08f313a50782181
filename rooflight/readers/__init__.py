"""The only place that knows foreign formats.  Each reader returns a Timeline."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path

from rooflight.errors import NotATrace, Refused
from rooflight.readers import execution as execution_trace
from rooflight.readers import kineto
from rooflight.readers.source import DEFAULT_LIMITS, Limits, unpacked_file
from rooflight.trace import stored
from rooflight.trace.execution import Execution, joined
from rooflight.trace.timeline import Timeline

__all__ = ["Limits", "is_execution", "read", "read_execution"]

#: Metadata of a trace may come first; the beginning of an execution trace is some hundred bytes.
_HEAD = 64 << 10


def read(
    path: str | PathLike[str],
    *,
    execution: str | PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    salvage: bool = False,
) -> Timeline:
    """Read a trace of the torch profiler (``.json``, ``.json.gz``, a zip with one of them), or what
    :meth:`Timeline.save` wrote.

    What it is is told by the content, never by the name.  ``execution`` is the execution trace that was
    recorded beside it: it completes the inputs of ops and tells their results.  With ``salvage`` a truncated
    trace gives what it holds, flagged ``truncated``.  Raises :class:`~rooflight.errors.Refused`, which says
    what is wrong and where, and :class:`~rooflight.errors.ProtocolMismatch` for a stored timeline of a newer
    version.
    """
    name, head, pieces = opened(path, limits)
    if execution is not None:
        return joined(read(path, limits=limits, salvage=salvage), read_execution(execution, limits=limits))
    if head.startswith(stored.MAGIC):
        return stored.decode(pieces, max_rows=limits.max_events)
    if execution_trace.is_execution(head):
        raise NotATrace(
            "an execution trace alone has no times",
            where=name,
            hint="give it beside the trace of its process",
        )
    return kineto.read(pieces, name, limits=limits, salvage=salvage)


def read_execution(path: str | PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> Execution:
    """Read what torch's ``ExecutionTraceObserver`` wrote; raises as :func:`read` does."""
    name, head, pieces = opened(path, limits)
    if not execution_trace.is_execution(head):
        raise NotATrace(
            "not an execution trace: it has no schema and nodes",
            where=name,
            hint="give the file that torch's ExecutionTraceObserver wrote",
        )
    return execution_trace.read(pieces, name, limits=limits)


def is_execution(path: str | PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the file is an execution trace, by its beginning; false for one that cannot be read."""
    try:
        return execution_trace.is_execution(opened(path, limits)[1])
    except Refused:
        return False


def opened(path: str | PathLike[str], limits: Limits) -> tuple[str, bytes, Iterator[bytes]]:
    """The name, the beginning (as much as tells the format) and all of a file's unpacked bytes."""
    file = Path(path)
    # Of a name that is no UTF-8 Python keeps half surrogates, which no document can hold.
    name = file.name.encode("utf-8", "backslashreplace").decode("utf-8")
    pieces, held, size = unpacked_file(file, limits), list[bytes](), 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _HEAD:
            break
    return name, b"".join(held), chain(held, pieces)
