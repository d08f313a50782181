"""Whether a timeline is one that a reader could have made: a stored file may be anybody's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflight.errors import Malformed, TooLarge
from rooflight.trace.counters import MAX_LAUNCHES
from rooflight.trace.tables import GpuKind, HostKind, Invalid
from rooflight.trace.timeline import MAX_DEVICES, Meta, Timeline
from rooflight.trace.times import MAX_NS, check_total

INT64_MAX = (1 << 63) - 1


def check(t: Timeline) -> None:
    """Raise :class:`~rooflight.errors.Malformed` where an index, a time or a number cannot be."""
    if len(t.device_keys) > MAX_DEVICES:
        raise TooLarge(f"too large: GPU events of more than {MAX_DEVICES} devices")
    _indices(t)
    _times(t)
    _tables(t)
    _meta(t.meta)
    _counters(t)
    if not 0 <= t.overlong_clipped <= INT64_MAX:
        raise _broken("overlong_clipped")


def _indices(t: Timeline) -> None:
    gpu, host = t.gpu, t.host
    columns: list[tuple[str, NDArray[np.integer[Any]], int, int]] = [
        ("gpu.name", gpu.name, 0, len(t.names)),
        ("gpu.kind", gpu.kind, 0, len(GpuKind)),
        ("gpu.device", gpu.device, 0, len(t.device_keys)),
        ("gpu.stream", gpu.stream, 0, len(t.stream_keys)),
        ("gpu.shape", gpu.shape, -1, len(t.shapes)),
        ("gpu.comm", gpu.comm, -1, len(t.comms)),
        ("gpu.invalid", gpu.invalid, 0, len(Invalid)),
        ("host.name", host.name, 0, len(t.names)),
        ("host.kind", host.kind, 0, len(HostKind)),
        ("host.thread", host.thread, 0, len(t.threads)),
        ("host.args", host.args, -1, len(t.op_args)),
    ]
    for name, column, low, end in columns:
        if column.size and not (low <= column.min() and column.max() < end):
            raise _broken(name)


def _times(t: Timeline) -> None:
    gpu, host = t.gpu, t.host
    ok = gpu.invalid == Invalid.OK
    starts = np.concatenate((gpu.start, host.start))
    ends = np.concatenate((gpu.end, host.end))
    # Before the lengths: the difference of two such times stays within int64.
    if starts.size and (starts.min() < -MAX_NS or starts.max() > MAX_NS):
        raise _broken("start")
    if (ends < starts).any() or (ends > MAX_NS).any():
        raise _broken("end")
    if (gpu.dur[ok] < 0).any() or (gpu.end - gpu.start > np.maximum(gpu.dur, 0))[ok].any():
        raise _broken("gpu.dur")
    check_total(t.source, gpu.dur, host.end - host.start)


def _tables(t: Timeline) -> None:
    keyed: list[tuple[str, Sequence[Any]]] = [
        ("names", t.names),
        ("device_keys", t.device_keys),
        ("stream_keys", t.stream_keys),
        ("threads", t.threads),
    ]
    for name, table in keyed:
        if len(set(table)) < len(table):
            raise _broken(f"{name}: one is there twice")


def _meta(meta: Meta) -> None:
    counts = [meta.base_ns, meta.rank, meta.world_size]
    for device in meta.devices:
        counts += [device.memory_bytes, device.sm_count, *device.limits.values()]
    if meta.base_ns > MAX_NS or any(n is not None and not 0 <= n <= INT64_MAX for n in counts):
        raise _broken("meta")


def _counters(t: Timeline) -> None:
    sizes = [len(metrics) for metrics in t.counters.metrics]
    for row in t.counters.rows:
        if not (0 <= row.name < len(t.names) and 0 <= row.metrics < len(sizes)):
            raise _broken("counters: an index")
        if len(row.values) != sizes[row.metrics] or not all(0 <= v <= INT64_MAX for v in row.values):
            raise _broken("counters: a value")
    if len(t.counters.rows) > MAX_LAUNCHES or not 0 <= t.counters.left_out <= INT64_MAX:
        raise _broken("counters: how many there are")


def _broken(where: str) -> Malformed:
    return Malformed(
        "the stored timeline is broken: a value is out of range",
        where=where,
        hint="write it again from the raw trace",
    )
