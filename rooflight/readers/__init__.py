"""The only place that knows foreign formats.  Each reader returns a Timeline."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path

from rooflight.readers import kineto
from rooflight.readers.source import DEFAULT_LIMITS, Limits, unpacked_file
from rooflight.trace import stored
from rooflight.trace.timeline import Timeline

__all__ = ["Limits", "read"]


def read(path: str | PathLike[str], *, limits: Limits = DEFAULT_LIMITS, salvage: bool = False) -> Timeline:
    """Read a trace of the torch profiler (``.json``, ``.json.gz``, a zip with one of them), or what
    :meth:`Timeline.save` wrote.

    What it is is told by the content, never by the name.  With ``salvage`` a truncated trace gives what it
    holds, flagged ``truncated``.  Raises :class:`~rooflight.errors.Refused`, which says what is wrong and
    where, and :class:`~rooflight.errors.ProtocolMismatch` for a stored timeline of a newer version.
    """
    file = Path(path)
    # Of a name that is no UTF-8 Python keeps half surrogates, which no document can hold.
    name = file.name.encode("utf-8", "backslashreplace").decode("utf-8")
    head, pieces = _peeked(unpacked_file(file, limits))
    if head.startswith(stored.MAGIC):
        return stored.decode(pieces, max_rows=limits.max_events)
    return kineto.read(pieces, name, limits=limits, salvage=salvage)


def _peeked(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, as many as tell the format, and all of them."""
    held = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) >= len(stored.MAGIC):
            break
    return b"".join(held), chain(held, pieces)
