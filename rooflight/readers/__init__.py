"""The only place that knows foreign formats.  Each reader returns a Timeline."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from rooflight.readers import kineto
from rooflight.readers.source import DEFAULT_LIMITS, Limits, unpacked_file
from rooflight.trace.timeline import Timeline

__all__ = ["Limits", "read"]


def read(path: str | PathLike[str], *, limits: Limits = DEFAULT_LIMITS, salvage: bool = False) -> Timeline:
    """Read a trace of the torch profiler (``.json``, ``.json.gz``).

    With ``salvage`` a truncated file gives what it holds, flagged ``truncated``.
    Raises :class:`~rooflight.errors.Refused`, which says what is wrong and where.
    """
    file = Path(path)
    # Of a name that is no UTF-8 Python keeps half surrogates, which no document can hold.
    name = file.name.encode("utf-8", "backslashreplace").decode("utf-8")
    return kineto.read(unpacked_file(file, limits), name, limits=limits, salvage=salvage)
