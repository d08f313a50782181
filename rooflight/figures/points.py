"""Which kernel groups have a place on two logarithmic axes, and where."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from rooflight.protocol import Kernel

#: A chart of SVG marks stays quick up to this many; the largest are drawn, the rest is counted.
MAX_POINTS = 2_000
#: A part of the nanosecond in which recordings tell times.
LEAST_US = 1e-6
_HOVER_NAME = 160

#: Why a group is not drawn, in the order in which the reasons are tried.
REASONS = {
    "copy": "copies and memsets: no arithmetic",
    "communication": "communication: bound by the link",
    "no_time": "no duration was recorded",
    "unknown": "FLOPs or bytes unknown",
    "no_flops": "no FLOPs: intensity is 0",
    "no_bytes": "no device memory traffic",
    "beyond": f"smaller than the {MAX_POINTS} largest",
}


@dataclass(frozen=True, slots=True)
class Point:
    """A drawn group: ``row`` is its index in the kernel table, ``ai`` FLOP/B, ``flop_per_s`` a rate."""

    row: int
    kernel: Kernel
    ai: float
    flop_per_s: float


def place(kernels: list[Kernel]) -> tuple[list[Point], dict[str, int]]:
    """Points, the longest first, and the count of every reason for which a group is left out."""
    points: list[Point] = []
    absent: dict[str, int] = {}
    for row, kernel in enumerate(kernels):
        reason = reason_absent(kernel)
        if reason:
            absent[reason] = absent.get(reason, 0) + 1
        else:
            points.append(_point(row, kernel))
    points.sort(key=lambda p: -p.kernel.time_us)
    if len(points) > MAX_POINTS:
        absent["beyond"] = len(points) - MAX_POINTS
    return points[:MAX_POINTS], absent


def reason_absent(k: Kernel) -> str | None:
    """The key of :data:`REASONS` that keeps a group off the chart, or ``None``."""
    tests = {
        "copy": k.kind in ("memcpy", "memset") or k.regime == "copy",
        "communication": k.regime == "communication",
        "no_time": not LEAST_US <= k.time_us < math.inf,
        "unknown": k.flops is None or k.bytes is None,
        "no_flops": k.flops == 0,
        "no_bytes": k.bytes == 0,
    }
    return next((reason for reason, holds in tests.items() if holds), None)


def _point(row: int, k: Kernel) -> Point:
    flops, size = float(k.flops or 0), float(k.bytes or 0)
    return Point(row, k, flops / size, flops / (k.time_us * 1e-6))


def hover(p: Point, total_us: float, about: str | None = None) -> str:
    """What the label over a point says; ``about`` stands in its second line instead of the op.

    Names come from outside: escaped, since plotly reads markup."""
    k = p.kernel
    share = f", {100 * k.time_us / total_us:.2g} % of kernel time" if total_us else ""
    roof = (
        "roof unknown" if k.roof_fraction is None else f"{100 * k.roof_fraction:.0f} % of its practical roof"
    )
    why = f": {k.reason}" if k.reason else ""
    above = "<br>above the datasheet peak, shown as measured" if k.above_peak else ""
    return (
        f"<b>{_text(k.short_name or k.name)}</b><br>{_text(about or k.op or 'no op')}<br>"
        f"{k.time_us / 1e3:,.4g} ms{share}, {k.count:,} launch{'es' if k.count != 1 else ''}<br>"
        f"{rate(p.flop_per_s)}FLOP/s, {rate(p.flop_per_s / p.ai)}B/s, {p.ai:.4g} FLOP/B<br>"
        f"{roof}{above}<br>{_text(k.regime + why)}, cost {_text(k.origin)}"
    )


def rate(per_s: float) -> str:
    """A rate with an SI prefix, three digits: ``8.49 T``."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_s >= factor:
            return (
                f"{per_s / factor:.3g} {prefix}"
                if per_s < 1e3 * factor
                else f"{per_s / factor:,.0f} {prefix}"
            )
    return f"{per_s:.3g} "


def _text(value: str) -> str:
    shown = value if len(value) <= _HOVER_NAME else value[: _HOVER_NAME - 1] + "…"
    return html.escape(shown, quote=False)
