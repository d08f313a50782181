"""What communication beside it costs a kernel: the same work while the link is busy, and alone.

A collective takes SMs and memory bandwidth from whatever runs beside it.  Launches of one group do the same
work, so that their medians tell how much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflight.attribution.intervals import Clipper, union
from rooflight.collectives import Contention
from rooflight.results.medians import medians
from rooflight.roofline.groups import Groups
from rooflight.trace.tables import I64, GpuKind, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import pct, us

#: A median of fewer launches tells nothing.
FEWEST = 5
MOST_ROWS = 64


def contention(timeline: Timeline, groups: Groups, is_comm: Mask, place: Sequence[int]) -> list[Contention]:
    """The kernel groups that ran beside communication, those that did longest first; ``place`` is the row of
    the kernel table of each group.  A launch counts as overlapped from half of its time on, as alone without
    any."""
    gpu, rows = timeline.gpu, timeline.valid_gpu
    rows = rows[(gpu.kind[rows] == GpuKind.KERNEL) & ~is_comm[rows]]
    beside, length = _beside(timeline, is_comm, rows), gpu.end[rows] - gpu.start[rows]
    group, n = groups.of_event[rows].astype(np.int64), len(groups.rows)
    time, whole = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.add.at(time, group, beside)
    np.add.at(whole, group, length)
    over, alone = (beside > 0) & (2 * beside >= length), beside == 0
    counts = [np.bincount(group[which], minlength=n) for which in (over, alone)]
    middles = [medians(group[which], length[which], n) for which in (over, alone)]
    alike = _alike(timeline, groups, rows, group)
    found = np.flatnonzero(time)
    order = found[np.lexsort((np.array(place, np.int64)[found], -time[found]))][:MOST_ROWS]
    return [
        _row(
            place[g],
            (int(time[g]), int(whole[g])),
            (int(counts[0][g]), int(counts[1][g])),
            (float(middles[0][g]), float(middles[1][g])),
            alike=bool(alike[g]),
        )
        for g in order.tolist()
    ]


def _alike(timeline: Timeline, groups: Groups, rows: I64, group: I64) -> Mask:
    """The groups whose launches are known to do the same: inputs are recorded, and all have one geometry."""
    shape, n = timeline.gpu.shape[rows].astype(np.int64), len(groups.rows)
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, -1, np.int64)
    np.minimum.at(least, group, shape)
    np.maximum.at(most, group, shape)
    found: Mask = (least == most) & np.array([g.dims is not None for g in groups.rows] or [], bool)
    return found


def _beside(timeline: Timeline, is_comm: Mask, rows: I64) -> I64:
    """How long communication ran on its device during each of these events, in ns."""
    gpu, valid = timeline.gpu, timeline.valid_gpu
    communicating, found = valid[is_comm[valid]], np.zeros(rows.size, np.int64)
    for d in range(len(timeline.device_keys)):
        calls = communicating[gpu.device[communicating] == d]
        if calls.size:
            mine = np.flatnonzero(gpu.device[rows] == d)
            busy = Clipper(union(gpu.start[calls], gpu.end[calls]))
            found[mine] = busy.within(gpu.start[rows[mine]], gpu.end[rows[mine]])
    return found


def _row(
    kernel: int,
    time_ns: tuple[int, int],
    counts: tuple[int, int],
    middle_ns: tuple[float, float],
    *,
    alike: bool,
) -> Contention:
    overlapped, alone = (us(m) if c else None for m, c in zip(middle_ns, counts, strict=True))
    tells = alike and min(counts) >= FEWEST and middle_ns[1] > 0
    return Contention(
        kernel=kernel,
        overlapped_us=us(time_ns[0]),
        overlapped_pct=pct(*time_ns),
        overlapped_count=counts[0],
        alone_count=counts[1],
        overlapped_p50_us=overlapped,
        alone_p50_us=alone,
        slowdown=round(middle_ns[0] / middle_ns[1], 3) if tells else None,
    )
