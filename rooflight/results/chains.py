"""What elementwise kernels hand on: bytes that one writes and the next on its stream reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflight.cost.launches import LaunchCosts
from rooflight.protocol import Kernel
from rooflight.results.exclusive import summed_by
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline


def with_chains(
    timeline: Timeline, rows: Sequence[Kernel], place: Sequence[int], groups: Groups, costs: LaunchCosts
) -> None:
    """Give the rows of the table what their launches take from the elementwise kernel right before and leave
    to the one right after; ``place`` is the row of each group.

    Of two neighbours on a stream the second is taken to read what the first wrote, as far as it reads at
    all: min(written, read).  Whatever runs between them, a copy too, ends the chain.
    """
    before, after = _neighbours(timeline, groups)
    if not before.size:
        return
    read = np.array([c.bytes_read or 0 for c in costs.costs], np.int64)[costs.index]
    written = np.array([c.bytes_written or 0 for c in costs.costs], np.int64)[costs.index]
    handed = np.minimum(written[before], read[after])
    taken = summed_by(groups.of_event[after].astype(np.int64), handed, len(groups.rows)).tolist()
    left = summed_by(groups.of_event[before].astype(np.int64), handed, len(groups.rows)).tolist()
    for group, row in enumerate(place):
        rows[row].chained_in_bytes, rows[row].chained_out_bytes = taken[group], left[group]


def _neighbours(timeline: Timeline, groups: Groups) -> tuple[I64, I64]:
    """Pairs of elementwise kernels that follow each other on a stream: rows of ``timeline.gpu``."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    rows = rows[np.lexsort((gpu.end[rows], gpu.start[rows], gpu.stream[rows]))]
    of_group = np.array([g.name.family == "elementwise" for g in groups.rows] or [False], bool)
    chains: Mask = of_group[groups.of_event[rows]] & (gpu.kind[rows] == GpuKind.KERNEL)
    together = chains[:-1] & chains[1:] & (gpu.stream[rows[:-1]] == gpu.stream[rows[1:]])
    return rows[:-1][together], rows[1:][together]
