"""The columns of the kernel table: label, definition on hover, and at which width they give way."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflight.metrics import METRICS


@dataclass(frozen=True, slots=True)
class Column:
    """``cls``: ``num`` right-aligned, ``opt`` hidden on phones, ``opt-l`` hidden under 1100 px."""

    key: str
    label: str
    meaning: str
    cls: str = ""
    sortable: bool = True


def _figure(key: str, field: str, cls: str, label: str = "") -> Column:
    metric = METRICS[f"kernel.{field}"]
    return Column(key, label or metric.label, metric.explanation, f"num {cls}".strip())


_COLUMNS = (
    Column("name", "Kernel", "The short name and the op that launched it; the full name is in the details."),
    Column("regime", "Regime", "What bounds the group, decided once from its median launch."),
    _figure("time", "time_us", "", "Time, ms"),
    _figure("share", "share_pct", "opt", "Share, %"),
    _figure("calls", "count", "opt"),
    _figure("p50", "p50_us", "opt-l", "p50, µs"),
    _figure("p99", "p99_us", "opt-l", "p99, µs"),
    Column("durations", "Durations", "Launches in twelve bins from shortest to longest.", "opt-l", False),
    _figure("flops", "achieved_tflops", "opt-l", "TFLOP/s"),
    _figure("gbs", "achieved_gbs", "opt-l", "GB/s"),
    _figure("ai", "ai", "opt-l", "FLOP/B"),
    _figure("roof", "roof_fraction", "", "Of roof"),
    Column("origin", "Cost", "Where FLOPs and bytes come from.", "opt-l"),
)
_ON_CPU = {"name": "Op", "flops": "GFLOP/s"}


def columns(cpu: bool) -> tuple[Column, ...]:
    """The columns, as they are headed for kernels or for the ops of a CPU."""
    return tuple(replace(c, label=_ON_CPU.get(c.key, c.label) if cpu else c.label) for c in _COLUMNS)
