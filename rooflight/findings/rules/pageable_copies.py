"""Copies from memory that the device cannot read by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.attribution.intervals import measure
from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import among


@rule(
    "pageable-copies",
    "Copies from and to pageable memory",
    regime="copy",
    why="The driver copies pageable memory by way of a pinned buffer of its own, in pieces, and the call "
    "waits.",
    fix="pin_memory=True in the DataLoader (or tensor.pin_memory()) and .to(device, non_blocking=True).",
    false_alarms="Pinning costs time too: a copy that happens once is not worth it.",
)
def pageable_copies(facts: Facts) -> Iterator[Found]:
    """Copies from or to pageable memory while nothing else runs on the device."""
    names = facts.timeline.names
    pageable = [i for i, name in enumerate(names) if name.startswith("Memcpy") and "Pageable" in name]
    rows = facts.rows(among(facts.timeline.gpu.name, np.array(pageable, np.int64)))
    when = facts.exposed(rows, "copy")
    if when.size:
        seen = Seen(f"{amount(facts, when)}, copy pageable memory", facts.longest(rows))
        assumption = "pinned and asynchronous, they run beside kernels"
        yield Found.over(when, (seen,), float(measure(when)), assumption)
