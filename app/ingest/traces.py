"""A raw trace of a run, and the timeline that stands in for it once it is gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rooflight.readers.source import Limits

if TYPE_CHECKING:
    from rooflight.trace.timeline import Timeline


@dataclass(frozen=True)
class Trace:
    """``source`` is the name to show for the file ``path``; ``stored`` is where its timeline is kept.

    Of a trace that its run has already: ``profile_id`` is its profile, ``kept`` what that keeps of an
    earlier analysis.
    """

    path: Path
    source: str
    stored: Path
    profile_id: str = ""
    kept: bytes | None = None


def read(trace: Trace, limits: Limits) -> Timeline:
    """The timeline of the raw trace, which is kept; the kept one where the raw trace is gone."""
    from rooflight import readers
    from rooflight.trace import stored

    if not trace.path.exists() and trace.stored.exists():
        # Our own file: the limits of uploads say nothing of it.
        return readers.read(trace.stored)
    timeline = readers.read(trace.path, limits=limits)
    trace.stored.parent.mkdir(parents=True, exist_ok=True)
    # A disk that is full is no fault of the trace: no refusal, the attempt fails.
    stored.write(timeline, trace.stored)
    return timeline
