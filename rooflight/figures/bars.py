"""Where the time goes, as plotly figures: the waterfall of a step, its regimes, and every step.

Plain dicts, as the roofline: ``meta`` of a trace tells its part and regime, and whether it waits; the page,
the report and the notebook paint it.  Times are ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rooflight.figures.walls import WATERFALL, Walls, rank_of, total, walls
from rooflight.metrics import METRICS
from rooflight.protocol import IDLE_PARTS, PARTS, REGIMES, Document
from rooflight.regimes.steps import GROUPS
from rooflight.units import US_PER_MS

if TYPE_CHECKING:
    from rooflight.analysis import Analysis

#: More bars than this can't be told apart; the rest is counted.
MAX_STEPS = 400
_INK = "ink"


def waterfall(analysis: Analysis | Document, rank: int | None = None) -> dict[str, Any]:
    """From the wall time (a mean step, or the recording) down to the kernel time and what is attainable.

    Each bar hangs from the end of the one before.  ``rank`` is a rank's number, the first when ``None``;
    :class:`KeyError` when there is none.
    """
    w = walls(rank_of(_document(analysis), rank))
    traces = [_lying(part, label, start, us, w.wall_us) for part, label, start, us in _falls(w)]
    return {"data": traces, "layout": _layout(w, "waterfall", lying=True)}


def _falls(w: Walls) -> Iterator[tuple[str, str, float, float]]:
    """Part, label, start and length in µs of each bar, from the top."""
    if not w.wall_us:
        return
    yield "wall", "Wall time", 0.0, w.wall_us
    at = w.wall_us
    for part in WATERFALL:
        us = total(w.parts, [part])
        if us > 0:
            at = max(0.0, at - us)
            yield part, METRICS[f"part.{part}"].label, at, us
    if w.told_attainable_us is not None:
        yield "attainable", "Attainable", 0.0, w.told_attainable_us


def regimes(analysis: Analysis | Document, rank: int | None = None) -> dict[str, Any]:
    """The wall time by regime (DEFINITIONS §16), the longest first."""
    w = walls(rank_of(_document(analysis), rank))
    spent = {r: total(w.parts, [p for p in PARTS if GROUPS[p] == r]) for r in REGIMES}
    longest = sorted((r for r in REGIMES if spent[r] > 0), key=lambda r: -spent[r])
    traces = [_lying(r, r, 0.0, spent[r], w.wall_us) for r in longest]
    return {"data": traces, "layout": _layout(w, "regimes", lying=True)}


def steps(analysis: Analysis | Document, rank: int | None = None) -> dict[str, Any]:
    """Every step as a stack of its parts, in the order of the recording; empty without steps."""
    w = walls(rank_of(_document(analysis), rank))
    with_parts = [s for s in w.steps if s.parts_us is not None]
    shown = with_parts[:MAX_STEPS]
    stacks = {p: [total(s.parts_us, [p]) / US_PER_MS for s in shown] for p in reversed(WATERFALL)}
    traces = [_standing(p, values, [s.n for s in shown]) for p, values in stacks.items() if any(values)]
    layout = _layout(w, "steps", lying=False)
    layout["meta"] |= {"n_steps": len(with_parts), "n_shown": len(shown), "steps": [s.n for s in shown]}
    return {"data": traces, "layout": layout}


def _document(analysis: Analysis | Document) -> Document:
    return analysis if isinstance(analysis, Document) else analysis.document


def _lying(part: str, label: str, start_us: float, us: float, wall_us: float) -> dict[str, Any]:
    share = 100 * us / wall_us if wall_us else 0.0
    return {
        "type": "bar",
        "orientation": "h",
        "name": label,
        "y": [label],
        "x": [us / US_PER_MS],
        "base": [start_us / US_PER_MS],
        "hovertemplate": f"{label}<br>%{{x:,.4g}} ms, {share:.1f} %<extra></extra>",
        "meta": _meta(part) | {"share_pct": round(share, 2)},
    }


def _standing(part: str, ms: list[float], numbers: list[int]) -> dict[str, Any]:
    label = METRICS[f"part.{part}"].label
    return {
        "type": "bar",
        "name": label,
        "x": list(range(len(ms))),
        "y": ms,
        "customdata": numbers,
        "hovertemplate": f"{label}<br>step %{{customdata}}: %{{y:,.4g}} ms<extra></extra>",
        "meta": _meta(part),
    }


def _meta(part: str) -> dict[str, Any]:
    regime = GROUPS.get(part, part)
    idle = part in IDLE_PARTS
    return {"role": "bar", "part": part, "regime": regime if regime in REGIMES else _INK, "idle": idle}


def _layout(w: Walls, kind: str, *, lying: bool) -> dict[str, Any]:
    time = {"title": {"text": "Time, ms"}, "rangemode": "tozero"}
    other: dict[str, Any] = {"autorange": "reversed"} if lying else {"title": {"text": "Step"}}
    return {
        "barmode": "overlay" if lying else "stack",
        "xaxis": time if lying else other,
        "yaxis": other if lying else time,
        "showlegend": not lying,
        "meta": {"kind": kind, "of": _of(w), "on_cpu": w.on_cpu, "wall_ms": w.wall_us / US_PER_MS},
    }


def _of(w: Walls) -> str:
    """What the times are of, in words."""
    n = sum(s.parts_us is not None for s in w.steps)
    marked = "inferred step" if w.inferred else "step"
    return "whole recording" if w.whole else f"mean of {n:,} {marked}{'' if n == 1 else 's'}"
