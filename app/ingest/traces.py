"""A raw trace of a run, and the timeline that stands in for it once it is gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflight.errors import NotATrace, Refused
from rooflight.readers.source import Limits

if TYPE_CHECKING:
    from rooflight.trace.timeline import Timeline


@dataclass(frozen=True)
class Trace:
    """``source`` is the name to show for the file ``path``; ``stored`` is where its timeline is kept, which
    tells more than the file when ``completed`` by an execution trace.

    Of a trace that its run has already: ``profile_id`` is its profile, ``kept`` what that keeps of an
    earlier analysis.
    """

    path: Path
    source: str
    stored: Path
    profile_id: str = ""
    kept: bytes | None = None
    completed: bool = False


def read(trace: Trace, limits: Limits) -> Timeline:
    """The timeline of the raw trace, which is kept; the kept one where that tells more, or the raw trace is
    gone."""
    from rooflight import readers

    if trace.stored.exists() and (trace.completed or not trace.path.exists()):
        # Our own file: the limits of uploads say nothing of it.
        return readers.read(trace.stored)
    timeline = readers.read(trace.path, limits=limits)
    if not trace.completed:
        _keep(timeline, trace)
    return timeline


def is_execution(trace: Trace) -> bool:
    """Whether it is an execution trace, which belongs to another trace of its run."""
    from rooflight import readers

    return readers.is_execution(trace.path)


def completed(traces: list[Trace], beside: Trace, limits: Limits) -> Trace:
    """The one of ``traces`` that the execution trace ``beside`` is of; what both tell is kept.

    One is read at a time.  Raises :class:`~rooflight.errors.Refused` where it is of none, or cannot be told.
    """
    from rooflight import readers
    from rooflight.trace.execution import Candidate, joined, owner

    if not traces:
        raise NotATrace(
            "an execution trace alone has no times",
            where=beside.source,
            hint="send the trace of its process first, then this",
        )
    execution = replace(readers.read_execution(beside.path, limits=limits), source=beside.source)

    def timeline(trace: Trace) -> Timeline:
        return replace(read(trace, limits), source=trace.source)

    own = traces[owner([Candidate.of(timeline(t), execution) for t in traces], execution)]
    if own.completed:
        raise Refused(f"{own.source}: it has an execution trace already", where=beside.source)
    both = replace(own, source=with_beside(own.source, beside.source), stored=beside.stored, completed=True)
    _keep(joined(timeline(own), execution), both)
    return both


def with_beside(source: str, beside: str) -> str:
    """The name to show for a trace that an execution trace completes."""
    return f"{source} with {beside}"


def _keep(timeline: Timeline, trace: Trace) -> None:
    from rooflight.trace import stored

    trace.stored.parent.mkdir(parents=True, exist_ok=True)
    # A disk that is full is no fault of the trace: no refusal, the attempt fails.
    stored.write(timeline, trace.stored)
