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
from rooflight.attribution.collectives import Calls
from rooflight.calibration import Calibration
from rooflight.errors import NotATrace
from rooflight.readers.source import Limits
from rooflight.regimes.quality import QualityFacts
from rooflight.results.result import Exposed, RankResult
from tests.factories import a_document


def analyzed(
    trace: Trace, limits: Limits, calibrations: list[Calibration]
) -> tuple[RankResult, dict[str, Any]]:
    """A rank that says what it was given, unless the trace wants something else."""
    wanted = json.loads(trace.path.read_bytes())
    act(wanted, trace.path)
    [rank] = a_document(kernels=3, steps=2).ranks
    rank.rank = wanted.get("rank", 0)
    told = {"calibrated": [c.device for c in calibrations], "limit": limits.max_bytes}
    rank.software = {"told": json.dumps(told)}
    none = np.empty(0, np.int64)
    calls, exposed = Calls((), (), none, none, none, none, none, none), Exposed(none, none, none, none)
    launches = {
        "name": np.array(["a", "b"], object),
        "start_ns": np.array([1, 2]),
        "dur_ns": np.array([1, 1]),
    }
    return RankResult(trace.path.name, rank, None, 0, QualityFacts(), calls, exposed), launches


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
