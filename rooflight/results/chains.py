"""What elementwise kernels hand on: bytes that one writes and the next on its stream reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflight.cost.launches import LaunchCosts
from rooflight.protocol import Kernel
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline

#: No device has so much memory, and no row holds more than the second.
_MOST, _MOST_IN_ROW = 2**39, 2**63 - 1


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
    read = np.array([_size(c.bytes_read) for c in costs.costs], np.float64)[costs.index]
    written = np.array([_size(c.bytes_written) for c in costs.costs], np.float64)[costs.index]
    handed = np.minimum(written[before], read[after])
    n = len(groups.rows)
    taken = np.bincount(groups.of_event[after], handed, n).tolist()
    left = np.bincount(groups.of_event[before], handed, n).tolist()
    for group, row in enumerate(place):
        rows[row].chained_in_bytes = min(round(taken[group]), _MOST_IN_ROW)
        rows[row].chained_out_bytes = min(round(left[group]), _MOST_IN_ROW)


def _size(size: int | None) -> float:
    """Bytes of a launch; none where they are not known, or more than any device has."""
    return float(size) if size is not None and 0 <= size <= _MOST else 0.0


def _neighbours(timeline: Timeline, groups: Groups) -> tuple[I64, I64]:
    """Pairs of elementwise kernels that follow each other on a stream: rows of ``timeline.gpu``."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    rows = rows[np.lexsort((gpu.end[rows], gpu.start[rows], gpu.stream[rows]))]
    of_group = np.array([g.name.family == "elementwise" for g in groups.rows] or [False], bool)
    chains: Mask = of_group[groups.of_event[rows]] & (gpu.kind[rows] == GpuKind.KERNEL)
    together = chains[:-1] & chains[1:] & (gpu.stream[rows[:-1]] == gpu.stream[rows[1:]])
    return rows[:-1][together], rows[1:][together]
