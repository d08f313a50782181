"""The device waits for the next batch."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import of_part
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule


@rule(
    "input-starved",
    "The device waits for the next batch",
    regime="input",
    why="While the loader makes a batch, nothing runs on the device.",
    fix="Give the DataLoader more workers (num_workers) and let them work ahead (prefetch_factor, "
    "persistent_workers=True, pin_memory=True); move decoding and augmentation to the device or to an "
    "earlier, "
    "stored form of the data.",
    false_alarms="The first step of an epoch starts the workers: record a window after it.  A loader that "
    "waits "
    "for storage may stay slow however many workers it has.",
)
def input_starved(facts: Facts) -> Iterator[Found]:
    """Idle time of the device while its step is inside the DataLoader's next."""
    yield of_part(facts, "input", "wait for input", "every batch is there when it is asked for")
