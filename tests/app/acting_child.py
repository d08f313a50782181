"""A child process whose analysis does what the trace tells it to: the machinery around it is the real one.

Run as a script; ``{"do": "...", "rank": n}`` in the trace decides.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from app.ingest.traces import Trace
from rooflight.errors import NotATrace
from rooflight.protocol import Calibration, Document
from rooflight.readers.source import Limits
from tests.factories import a_document


def analyzed(
    traces: list[Trace], limits: Limits, calibrations: list[Calibration]
) -> tuple[Document, dict[int, Any]]:
    """One document with a rank per trace, unless a trace wants something else."""
    given = [json.loads(t.path.read_bytes()) for t in traces]
    for t, trace in zip(traces, given, strict=True):
        act(trace, t.path)
    document = a_document(kernels=3, steps=2)
    [rank] = document.ranks
    document.ranks = [type(rank)(**{**fields(rank), "rank": t.get("rank", 0)}) for t in given]
    document.telemetry = {"calibrated": [c.device for c in calibrations], "limit": limits.max_bytes}
    launches = {
        "name": np.array(["a", "b"], object),
        "start_ns": np.array([1, 2]),
        "dur_ns": np.array([1, 1]),
    }
    return document, {r.rank: launches for r in document.ranks}


def fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


def act(trace: dict[str, Any], path: Path) -> None:
    """Misbehave as asked."""
    match trace.get("do"):
        case "refuse":
            raise NotATrace("no traceEvents", where=f"{path}: byte 12", hint="send a trace")
        case "fill memory":
            np.ones(2**40, np.uint8)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise KeyError("an error of ours")
        case "sleep":
            time.sleep(trace["seconds"])


if __name__ == "__main__":
    from app.jobs import child

    sys.exit(child.main(analyzed))
