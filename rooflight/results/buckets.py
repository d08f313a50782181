"""Every GPU event of a recording in one of a few named buckets: nothing is left out in silence.

Their events add up to all GPU events, their times to the durations that were recorded (DEFINITIONS §17).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.protocol import Bucket
from rooflight.trace.tables import I64, GpuKind, Invalid, Mask
from rooflight.trace.timeline import Timeline
from rooflight.units import us

_LOW = (1 << 32) - 1


def buckets(timeline: Timeline, links: Links) -> dict[str, Bucket]:
    """The buckets that hold something, by name; with ``clipped``, the time that serial streams cut off."""
    gpu = timeline.gpu
    kernel = gpu.kind == GpuKind.KERNEL
    recorded = np.maximum(gpu.dur, 0)
    valid = gpu.invalid == Invalid.OK
    kept = np.where(valid, gpu.end - gpu.start, recorded)
    found = {name: _bucket(mask, kernel, kept) for name, mask in _masks(timeline, links, valid)}
    found["clipped"] = _bucket(valid & (kept < recorded), kernel, recorded - kept)
    # They are counted where the rest of their time is.
    found["clipped"].events = found["clipped"].kernels = 0
    return {name: b for name, b in found.items() if b.events or b.time_us}


def _masks(timeline: Timeline, links: Links, valid: Mask) -> Iterator[tuple[str, Mask]]:
    """Name and members of each bucket; every event is a member of one."""
    linked, has_op = links.launch >= 0, links.op >= 0
    yield "attributed", valid & has_op
    yield "unattributed", valid & linked & ~has_op
    yield "unlinked", valid & ~linked & ~has_op
    for reason in Invalid:
        if reason is not Invalid.OK:
            yield reason.name.lower(), timeline.gpu.invalid == reason


def _bucket(members: Mask, kernel: Mask, ns: I64) -> Bucket:
    mine = members & kernel
    return Bucket(
        events=int(np.count_nonzero(members)),
        time_us=us(_total(ns[members])),
        kernels=int(np.count_nonzero(mine)),
        kernel_time_us=us(_total(ns[mine])),
    )


def _total(ns: I64) -> int:
    """The sum of durations, each of which may be near the end of int64."""
    return (int((ns >> 32).sum()) << 32) + int((ns & _LOW).sum())
