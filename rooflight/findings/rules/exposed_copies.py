"""Copies that nothing hides."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule


@rule(
    "exposed-copies",
    "Copies that no kernel hides",
    regime="copy",
    why="A copy engine works beside the SMs: a copy on a stream of its own costs nothing while kernels run.",
    fix="Copy the next batch on a second stream while this one is computed (non_blocking=True, pinned "
    "memory); avoid "
    "copies from device to device that only change a view.",
    false_alarms="A copy that the next kernel needs at once has nothing to hide behind.",
)
def exposed_copies(facts: Facts) -> Iterator[Found]:
    """Time in which only copies and memsets run."""
    time = facts.parts["copy"]
    yield Found(
        seen=(
            Seen(
                f"{facts.each(time)}, {facts.share(time)}, only copies run",
                steps=facts.steps_with_most("copy"),
            ),
        ),
        time_ns=time,
        saving_ns=time,
        assumption="every copy runs beside kernels",
    )
