"""Rooflight: what bounds your GPUs, what the gap costs and what to do first.

``read(path)`` gives a :class:`~rooflight.trace.timeline.Timeline`, ``analyze(timeline)`` an
:class:`~rooflight.analysis.Analysis`; ``analyze_files(paths)`` does both for the ranks of a run, several at a
time.  What is raised on purpose is a :class:`~rooflight.errors.RooflightError`.  docs/python.md has examples.

The names in ``__all__`` are public.  Importing this package imports neither numpy nor torch; a name is
imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rooflight.analysis import Analysis, Options, analyze, analyze_files
    from rooflight.comparison import compare
    from rooflight.errors import (
        Malformed,
        MissingExtra,
        NotATrace,
        ProtocolMismatch,
        Refused,
        RooflightError,
        TooLarge,
        Truncated,
    )
    from rooflight.readers import Limits, read
    from rooflight.readers.counters import read_counters
    from rooflight.recorder import record
    from rooflight.results.tensorboard import tensorboard_view
    from rooflight.scenarios import Money, Scenario, whatif
    from rooflight.trace.timeline import Timeline

_HOMES = {
    "Analysis": "rooflight.analysis",
    "Limits": "rooflight.readers",
    "Malformed": "rooflight.errors",
    "MissingExtra": "rooflight.errors",
    "Money": "rooflight.scenarios",
    "NotATrace": "rooflight.errors",
    "Options": "rooflight.analysis",
    "ProtocolMismatch": "rooflight.errors",
    "Refused": "rooflight.errors",
    "RooflightError": "rooflight.errors",
    "Scenario": "rooflight.scenarios",
    "Timeline": "rooflight.trace.timeline",
    "TooLarge": "rooflight.errors",
    "Truncated": "rooflight.errors",
    "analyze": "rooflight.analysis",
    "analyze_files": "rooflight.analysis",
    "compare": "rooflight.comparison",
    "read": "rooflight.readers",
    "read_counters": "rooflight.readers.counters",
    "record": "rooflight.recorder",
    "tensorboard_view": "rooflight.results.tensorboard",
    "whatif": "rooflight.scenarios",
}
__all__ = [
    "Analysis",
    "Limits",
    "Malformed",
    "MissingExtra",
    "Money",
    "NotATrace",
    "Options",
    "ProtocolMismatch",
    "Refused",
    "RooflightError",
    "Scenario",
    "Timeline",
    "TooLarge",
    "Truncated",
    "__version__",
    "analyze",
    "analyze_files",
    "compare",
    "read",
    "read_counters",
    "record",
    "tensorboard_view",
    "whatif",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
