"""Copies that nothing hides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.findings.evidence import of_part
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule
from rooflight.trace.tables import GpuKind


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
    gpu = facts.timeline.gpu
    rows = facts.rows(gpu.kind != np.int8(GpuKind.KERNEL))
    rows = rows[facts.begins(rows)]
    groups = facts.longest(rows)
    yield of_part(facts, "copy", "only copies run", "every copy runs beside kernels", groups)
