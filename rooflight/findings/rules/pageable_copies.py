"""Copies from memory that the device cannot read by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule


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
    rows = facts.rows(np.isin(facts.timeline.gpu.name, pageable))
    time = facts.exposed_ns(rows, "copy")
    if time:
        yield Found(
            seen=(Seen(f"{facts.each(time)}, {facts.share(time)}, copy pageable memory"),),
            time_ns=time,
            saving_ns=time,
            assumption="pinned and asynchronous, they run beside kernels",
        )
