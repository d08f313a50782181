"""A rank that the others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.attribution.intervals import measure
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import run_rule
from rooflight.findings.waits import Waits

_MOST = 0.5
_FEWEST = 4
_SHOWN = 3


@run_rule(
    "straggler",
    "Most collectives wait for one rank",
    regime="communication",
    why="A collective begins to move bytes when its last rank has arrived; the others stand still until "
    "then.",
    fix="Look at what the late rank does before its collectives: its input, its share of the work (lengths, "
    "tables, experts, pipeline stage), its clocks and temperature, other programs on its host.",
    false_alarms="A pipeline's stages wait for each other by design.  With clocks of several hosts, arrivals "
    "are known only as well as the clocks agree.",
)
def straggler(waits: Waits) -> Iterator[Found]:
    """Of at least four collectives that a rank took part in, it waited in more than half for the same other
    rank, which came last: the exposed communication before that one arrived."""
    rare = waits.collectives < _FEWEST or waits.last <= _MOST * waits.collectives
    if rare or waits.straggler == waits.rank:
        return
    time = measure(waits.when)
    share = f"{100 * time / waits.wall_ns:.0f} %" if waits.wall_ns else "–"
    order = sorted(range(len(waits.steps)), key=lambda i: (-waits.wait_ns[i], i))
    late = f"rank {waits.straggler} came last in {waits.last} of {waits.collectives} collectives"
    steps = tuple(waits.steps[i] for i in order[:_SHOWN])
    yield Found.over(
        waits.when,
        (Seen(f"{late}; {waits.each(time)}, {share}, wait", waits.groups, steps),),
        float(time),
        f"rank {waits.straggler} arrives with the others, and nobody else is late in its place",
    )
