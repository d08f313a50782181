"""Rooflight: what bounds your GPUs, what the gap costs and what to do first.

``read(path)`` gives a :class:`~rooflight.trace.timeline.Timeline`, ``analyze(timeline)`` an
:class:`~rooflight.analysis.Analysis`.  Importing this package imports neither numpy nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rooflight.analysis import Analysis, Options, analyze, analyze_files
    from rooflight.readers import read
    from rooflight.trace.timeline import Timeline

_HOMES = {
    "Analysis": "rooflight.analysis",
    "Options": "rooflight.analysis",
    "analyze": "rooflight.analysis",
    "analyze_files": "rooflight.analysis",
    "read": "rooflight.readers",
    "Timeline": "rooflight.trace.timeline",
}
__all__ = ["Analysis", "Options", "Timeline", "__version__", "analyze", "analyze_files", "read"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
