"""The files of one capture."""

from __future__ import annotations

from pathlib import Path

#: What was ordered, what became of each process, and the analysis of what they wrote.
ORDER, OUTCOME, ANALYSIS = "order.json", "outcome.json", "analysis.json"


def trace_file(folder: Path, pid: int) -> Path:
    """The recording of one process."""
    return folder / f"{pid}.pt.trace.json"
