"""The child that analyses the traces of one capture: numpy is loaded here, not in the daemon.

``python -P -m agent.capture.reduce FOLDER [CALIBRATION...]`` leaves ``analysis.json`` in the folder; what
cannot be analysed is said on standard error, with exit status 2.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent.capture.folder import ANALYSIS, ORDER, OUTCOME, trace_file
from agent.store import write
from rooflight.captures import Captured, Order, Outcome
from rooflight.errors import Refused, RooflightError

if TYPE_CHECKING:
    from rooflight.trace.timeline import Timeline

#: The training on this host goes first.
NICE = 10


def main(argv: list[str]) -> int:
    """0 analysed; 2 refused, with the reason on standard error."""
    os.nice(NICE)
    folder, calibrations = Path(argv[0]), [Path(name) for name in argv[1:]]
    try:
        write(folder / ANALYSIS, _analysis(folder, calibrations))
    except RooflightError as e:
        sys.stderr.write(f"{e}\n")
        return 2
    return 0


def _analysis(folder: Path, calibrations: list[Path]) -> bytes:
    from rooflight.analysis import Options, analyze
    from rooflight.protocol import Calibration, encode

    known = [msgspec.json.decode(path.read_bytes(), type=Calibration) for path in calibrations]
    order = msgspec.json.decode((folder / ORDER).read_bytes(), type=Order)
    outcome = msgspec.json.decode((folder / OUTCOME).read_bytes(), type=Outcome)
    members = [row for row in outcome.processes if row.state == "written"]
    if not members:
        raise Refused("no process has written a recording", where=str(folder))
    timelines = [_timeline(folder, row, rank) for row, rank in zip(members, ranks(members), strict=True)]
    # Kineto counts an iteration, and begins with the next, as the step of an optimizer ends.
    options = Options(calibrations=tuple(known), begins_at_step=order.iterations is not None)
    return encode(analyze(timelines, options=options).document)


def ranks(members: list[Captured]) -> list[int]:
    """The rank of each process: its launcher's word, unless two have the same or one has none; then by
    their pids, since a launcher starts its ranks in order."""
    told = [row.rank for row in members]
    if None not in told and len(set(told)) == len(told):
        return [rank for rank in told if rank is not None]
    order = sorted(range(len(members)), key=lambda i: members[i].pid)
    return [order.index(i) for i in range(len(members))]


def _timeline(folder: Path, row: Captured, rank: int) -> Timeline:
    from rooflight.readers import read

    timeline = read(trace_file(folder, row.pid))
    if timeline.meta.rank is not None:
        return timeline
    return replace(timeline, meta=replace(timeline.meta, rank=rank))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
