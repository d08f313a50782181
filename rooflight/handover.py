"""The process that a recorded training leaves behind: it analyses the trace, and sends the analysis.

``python -P -m rooflight.handover FOLDER`` does what ``handover.json`` in the folder asks for, leaves
``analysis.json`` and ``outcome.json`` there, and says what it does on standard output.  The token comes by
the environment.  0: done, and sent where there is a server; 2: nothing was analysed; 3: it could not be sent.
"""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rooflight.calibration import Calibration
from rooflight.client import Client, Rejected
from rooflight.errors import Refused, RooflightError
from rooflight.launch import key
from rooflight.protocol import Document, encode
from rooflight.recorder import ANALYSIS, ORDER, OUTCOME, TOKEN, state
from rooflight.retry import Retry

if TYPE_CHECKING:
    from rooflight.trace.timeline import Timeline

#: The training on this host goes first.
NICE = 15
#: Nobody waits: a server that is being restarted is there again in some minutes.
PATIENCE = Retry(tries=8, base_s=2.0, cap_s=120.0)
DONE, NOT_ANALYSED, NOT_SENT = 0, 2, 3
#: So many launches of one parent are told apart by the ranks that their runs have; the status that says so.
LAUNCHES, CONFLICT = 32, 409


class Order(msgspec.Struct):
    """What is to be done with the trace of one process."""

    trace: str
    project: str
    key: str
    run: str | None = None
    rank: int | None = None
    world_size: int | None = None
    server: str | None = None
    insecure: bool = False
    units_per_step: dict[str, float] = {}


class Outcome(msgspec.Struct):
    """What became of it."""

    problem: str | None = None
    run_id: str | None = None
    page: str | None = None


def main(argv: list[str], retry: Retry = PATIENCE) -> int:
    """The exit status, after the order in the folder was carried out as far as it could be."""
    os.nice(NICE)
    folder = Path(argv[0])
    status, outcome = _carry_out(folder, retry)
    _write(folder / OUTCOME, msgspec.json.encode(outcome))
    _say(outcome.problem or outcome.page or "done")
    return status


def _carry_out(folder: Path, retry: Retry) -> tuple[int, Outcome]:
    try:
        order = order_of(folder)
        document = analysed(folder, order)
        _write(folder / ANALYSIS, encode(document))
    except (RooflightError, OSError) as e:
        return NOT_ANALYSED, Outcome(f"nothing is analysed: {e}")
    _say(f"analysed: {folder / ANALYSIS}")
    if order.server is None:
        return DONE, Outcome()
    try:
        return DONE, sent(order, document, retry)
    except RooflightError as e:
        return NOT_SENT, Outcome(f"not sent: {e}")


def order_of(folder: Path) -> Order:
    """What the training asked for; :class:`Refused` where it cannot be read."""
    try:
        return msgspec.json.decode((folder / ORDER).read_bytes(), type=Order)
    except (OSError, msgspec.DecodeError) as e:
        raise Refused(f"not the folder of a recording: {e}", where=str(folder)) from e


def analysed(folder: Path, order: Order) -> Document:
    """The analysis of the trace in the folder, with what the training said of itself."""
    from rooflight.analysis import Options, analyze
    from rooflight.readers import read

    timeline = placed(read(folder / order.trace), order)
    document = analyze(timeline, options=Options(calibrations=tuple(_calibrations()))).document
    document.units_per_step = order.units_per_step
    return document


def placed(timeline: Timeline, order: Order) -> Timeline:
    """A timeline with its place among the ranks, where only its launcher knew it."""
    meta = timeline.meta
    rank = order.rank if meta.rank is None else meta.rank
    world = order.world_size if meta.world_size is None else meta.world_size
    return replace(timeline, meta=replace(meta, rank=rank, world_size=world))


def sent(order: Order, document: Document, retry: Retry) -> Outcome:
    """Push to the run that the ranks of the launch share: whoever comes first makes it."""
    client = Client(order.server or "", os.environ.get(TOKEN), insecure=order.insecure, retry=retry)
    project = client.create_project(order.project)
    for number in itertools.count():
        # No host: the request of every rank must be the same one.
        run = client.create_run(project.id, order.run, key=key_of(order, number))
        try:
            client.push_analysis(run.id, document)
            break
        except Rejected as e:
            if e.status != CONFLICT or number + 1 >= LAUNCHES:
                raise
            _say(f"{e}: it is the run of an earlier launch")
    return Outcome(run_id=run.id, page=client.page(run.id))


def key_of(order: Order, number: int) -> str:
    """Of the run of the launch; where the rank is in it already, of the launch after it.

    Ranks that a shell starts, one launch after another, have one parent, and nothing else tells them apart.
    """
    return order.key if number == 0 else key(order.key, str(number))


def _calibrations() -> list[Calibration]:
    """Those that the agent keeps on this host; what cannot be read is passed over."""
    found = []
    for path in sorted((state() / "calibrations").glob("*.json")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Calibration))
        except (OSError, msgspec.DecodeError) as e:
            _say(f"the calibration {path} is passed over: {e}")
    return found


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    part = path.with_name(f".{path.name}")
    part.write_bytes(data)
    part.replace(path)


def _say(text: str) -> None:
    sys.stdout.write(f"rooflight: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
