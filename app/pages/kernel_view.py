"""Rows of the kernel table: every number as text, and beside it the value that sorting compares."""

from __future__ import annotations

from dataclasses import dataclass

from app.pages.numbers import DASH, NB, column, count, fixed, percent, significant
from rooflight.cost.reasons import REASONS as COST_REASONS
from rooflight.figures.points import REASONS, reason_absent
from rooflight.protocol import Kernel
from rooflight.report.summary import because

#: Rows in the first answer, which keep it under 300 kB, and rows a page ever holds: the rest is in the
#: JSON, and the page says so.
FIRST_ROWS = 100
MAX_ROWS = 2_000
_TITLE = 600


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, what it sorts by (null sorts last), and why it is a dash."""

    text: str
    value: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel group ready for the table.  ``bar_pct`` is its time against the longest row's."""

    index: int
    name: str
    short: str
    op: str
    regime: str
    reason: str
    origin: str
    cost_reason: str
    above: bool
    plotted: bool
    bar_pct: float
    roof_bar_pct: float | None
    bars: str
    bars_said: str
    time: Cell
    share: Cell
    calls: Cell
    p50: Cell
    p99: Cell
    flops: Cell
    gbs: Cell
    ai: Cell
    roof: Cell


def kernel_rows(
    kernels: list[Kernel], start: int = 0, stop: int = FIRST_ROWS, *, cpu: bool = False
) -> list[KernelRow]:
    """Rows ``start`` to ``stop`` in descending time; ``index`` is the place in ``kernels``.

    Rates are TFLOP/s, of a CPU GFLOP/s.
    """
    order = by_time(kernels)
    longest = kernels[order[0]].time_us if order else 0.0
    return [_row(i, kernels[i], longest, cpu) for i in order[start:stop]]


def kernel_row(kernels: list[Kernel], index: int, *, cpu: bool = False) -> KernelRow:
    """The row of ``kernels[index]``."""
    return _row(index, kernels[index], max(k.time_us for k in kernels), cpu)


def by_time(kernels: list[Kernel]) -> list[int]:
    """Indices of the rows from the longest to the shortest, at most :data:`MAX_ROWS`."""
    return sorted(range(len(kernels)), key=lambda i: -kernels[i].time_us)[:MAX_ROWS]


def _row(index: int, k: Kernel, longest: float, cpu: bool) -> KernelRow:
    because_of = cost_words(k.cost_reason)
    why = because_of or "FLOPs or bytes are not known"
    # A bound of 0 is none: no work was counted that a known roof limits.
    roof_pct = 100 * k.roof_fraction if k.roof_fraction else None
    return KernelRow(
        index=index,
        name=k.name if len(k.name) <= _TITLE else k.name[: _TITLE - 1] + "…",
        short=_short(k),
        op=_under(k, cpu),
        regime=k.regime,
        reason=because(k),
        origin=k.origin,
        cost_reason=because_of,
        above=k.above_peak,
        plotted=reason_absent(k) is None,
        bar_pct=100 * k.time_us / longest if longest else 0.0,
        roof_bar_pct=None if roof_pct is None else min(100.0, roof_pct),
        bars=bars(k.histogram),
        bars_said=_said(k),
        time=Cell(column(k.time_us / 1e3), k.time_us),
        share=Cell(percent(k.share_pct, 1), k.share_pct, "no kernel time"),
        calls=Cell(count(k.count), k.count),
        p50=_duration(k.p50_us),
        p99=_duration(k.p99_us),
        flops=_rate(k.achieved_tflops, cpu, why),
        gbs=Cell(column(k.achieved_gbs, 0), k.achieved_gbs, why),
        ai=Cell(significant(k.ai), k.ai, _no_ai(k, why)),
        roof=Cell(DASH if roof_pct is None else f"{percent(roof_pct)}{NB}%", roof_pct, _no_roof(k, why)),
    )


def cost_words(reason: str) -> str:
    """Why a cost is what it is, with a meaning in place of a code; words that are none stay."""
    return "; ".join(COST_REASONS[r].meaning if r in COST_REASONS else r for r in reason.split("; "))


def _short(k: Kernel) -> str:
    short = k.short_name or k.name
    return short if len(short) <= 120 else short[:119] + "…"


def _under(k: Kernel, cpu: bool) -> str:
    """The line under the name: a kernel's op; an op's own shapes, which tell it from others."""
    if not cpu:
        return k.op or "no op"
    dims = k.input_dims or "no shapes were recorded"
    return dims if len(dims) <= 160 else dims[:159] + "…"


def _duration(us: float | None) -> Cell:
    return Cell(fixed(us, 1 if us is not None and us < 100 else 0), us, "too few launches were recorded")


def _rate(tflops: float | None, cpu: bool, why: str) -> Cell:
    value = None if tflops is None else tflops * (1_000 if cpu else 1)
    return Cell(column(value), value, why)


def _no_ai(k: Kernel, why: str) -> str:
    reason = reason_absent(k)
    return REASONS[reason] if reason else why


def _no_roof(k: Kernel, why: str) -> str:
    if k.roof_fraction == 0:
        return "no work is counted whose roof is known"
    return "no roof is known for its dtype" if k.flops is not None and k.bytes is not None else why


def _said(k: Kernel) -> str:
    if k.min_us is None or k.max_us is None:
        return "durations are not known"
    return f"{count(k.count)} launches from {significant(k.min_us)} to {significant(k.max_us)} µs"


def bars(histogram: list[int], *, width: int = 64, height: int = 18) -> str:
    """The histogram as one SVG path of bars: an empty bin draws nothing, a filled one at least 1 px."""
    highest = max(histogram, default=0)
    if not highest:
        return ""
    step = width / len(histogram)
    return "".join(
        f"M{i * step + 0.5:.1f} {height}v-{max(1.0, height * n / highest):.1f}h{step - 1:.1f}V{height}z"
        for i, n in enumerate(histogram)
        if n > 0
    )
