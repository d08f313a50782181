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
    return kineto.read(unpacked_file(file, limits), file.name, limits=limits, salvage=salvage)
