"""The columns of the kernel table: label, definition on hover, and at which width they give way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """``cls``: ``num`` right-aligned, ``opt`` hidden on phones, ``opt-l`` hidden under 1100 px."""

    key: str
    label: str
    meaning: str
    cls: str = ""
    sortable: bool = True


COLUMNS = (
    Column("name", "Kernel", "short name and the op that launched it; the full name is in the details"),
    Column("regime", "Regime", "what bounds the group: decided once from its median launch"),
    Column("time", "Time, ms", "sum of the durations of its launches over the recording", "num"),
    Column("share", "Share, %", "of the time of all kernels", "num opt"),
    Column("calls", "Launches", "launches in the recording", "num opt"),
    Column("p50", "p50, µs", "median duration of a launch", "num opt"),
    Column("p99", "p99, µs", "99th percentile of the durations", "num opt-l"),
    Column("durations", "Durations", "launches in twelve bins from shortest to longest", "opt-l", False),
    Column("tflops", "TFLOP/s", "FLOPs / time; a multiply-add is 2 FLOPs", "num opt-l"),
    Column("gbs", "GB/s", "bytes of device memory / time", "num opt-l"),
    Column("ai", "FLOP/B", "arithmetic intensity: FLOPs per byte of device memory", "num opt-l"),
    Column("roof", "Of roof", "bound time / time, against the practical roofs", "num"),
    Column("origin", "Cost", "where FLOPs and bytes come from", "opt-l"),
)  # fmt: skip
