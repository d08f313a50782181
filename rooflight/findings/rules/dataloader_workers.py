"""Batches are made by the training process itself."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.attribution.intervals import measure
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule

_ALONE = "_SingleProcessDataLoaderIter"


@rule(
    "dataloader-workers",
    "The DataLoader has no workers",
    regime="input",
    why="With num_workers=0 the training process makes each batch itself, and can launch nothing meanwhile.",
    fix="num_workers=4 or more, with pin_memory=True and persistent_workers=True; then look whether input "
    "is still "
    "waited for.",
    false_alarms="Data that is in memory already, and needs no work, may be no faster with workers.",
)
def dataloader_workers(facts: Facts) -> Iterator[Found]:
    """Waits for input in a recording whose DataLoader is the one without worker processes."""
    if any(_ALONE in name for name in facts.timeline.names):
        when = facts.idle("input")
        seen = Seen(f"num_workers=0: {facts.each(measure(when))} make the next batch")
        yield Found.over(when, (seen,), float(measure(when)), "workers make every batch in time")
