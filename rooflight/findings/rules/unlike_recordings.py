"""Ranks that were recorded with different options."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import run_rule
from rooflight.findings.waits import Waits


@run_rule(
    "unlike-recordings",
    "Some ranks recorded less than others",
    why="What one rank did not record is unknown for it alone: its figures do not compare with those of the "
    "others, and what holds for the run rests on fewer ranks than it seems.",
    fix="The same profile(...) with the same schedule on all ranks, and prof.step() on each.",
    false_alarms="None: nothing is claimed.",
    quiet=True,
)
def unlike_recordings(waits: Waits) -> Iterator[Found]:
    """Input shapes, steps or the GPU's name that some ranks of a run recorded and others did not, told of
    every rank."""
    if waits.unlike:
        yield Found(tuple(map(Seen, waits.unlike)), time_ns=0, saving_ns=None, assumption="")
