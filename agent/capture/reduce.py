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

from agent.capture.folder import ANALYSIS, manifest_of
from agent.store import write
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
    from rooflight.calibration import Calibration
    from rooflight.protocol import encode

    manifest = manifest_of(folder)
    if not manifest.recordings:
        raise Refused("no process has written a recording", where=str(folder))
    known = [msgspec.json.decode(path.read_bytes(), type=Calibration) for path in calibrations]
    rows = zip(manifest.recordings, manifest.ranks(), strict=True)
    timelines = [_timeline(folder / row.file, rank) for row, rank in rows]
    # Kineto counts an iteration, and begins with the next, as the step of an optimizer ends.
    options = Options(calibrations=tuple(known), begins_at_step=manifest.begins_at_step)
    return encode(analyze(timelines, options=options).document)


def _timeline(file: Path, rank: int) -> Timeline:
    from rooflight.readers import read

    timeline = read(file)
    if timeline.meta.rank is not None:
        return timeline
    return replace(timeline, meta=replace(timeline.meta, rank=rank))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
