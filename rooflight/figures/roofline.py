"""The roofline chart as a plotly figure: a plain dict, so that plotly need not be installed to make it.

Colours are not written here.  Every trace carries ``meta`` with its role (``roof`` or ``points``) and its
regime; the page paints it with the tokens of its theme.
"""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from rooflight.figures.caches import MEMORIES, at_cache, memories_of
from rooflight.figures.ceilings import Flat, flats_of, line, plausible
from rooflight.figures.levels import NOUNS, Row, dtypes_of, rows_at, subject, whole
from rooflight.figures.points import REASONS, Point, hover, place
from rooflight.protocol import REGIMES, Ceiling, Document, Kernel, Rank

if TYPE_CHECKING:
    from rooflight.analysis import Analysis

__all__ = ["SYMBOLS", "roofline", "subject"]

SYMBOLS = {"measured": "square", "modelled": "circle", "inferred": "diamond", "unknown": "x"}
_BIGGEST, _SMALLEST = 46.0, 6.0  # diameters in px; area is time between them
_LABEL = 34
# What is slower than 1e-4 of the top flattens all others: it is left below the frame and counted, as long as
# those groups together are less than this share of the drawn time.
_DECADES, _NEGLIGIBLE = 4, 0.01


def roofline(
    analysis: Analysis | Document,
    rank: int = 0,
    *,
    level: str = "kernel",
    dtype: str | None = None,
    memory: str = "dram",
) -> dict[str, Any]:
    """The figure of one rank: ``{"data": [...], "layout": {...}}``, strict JSON.

    x is FLOP per byte of device memory, y is the achieved rate; ``layout.meta`` holds the roofs, the unit
    of y and how many rows are not drawn, by reason.  A recording without GPU work shows its CPU.
    ``rank`` is the number of the rank; :class:`KeyError` when the document has none of that number.
    ``level`` is what a point speaks for (:data:`~rooflight.figures.levels.LEVELS`; of a run there is a
    point for each rank on the same device), ``dtype`` keeps the work of one number type;
    ``memory`` is what a byte is counted at: device memory, or a cache (:mod:`rooflight.figures.caches`).
    :class:`ValueError` for a level or memory that there is none of.
    """
    document = analysis if isinstance(analysis, Document) else analysis.document
    found = next((r for r in document.ranks if r.rank == rank), None)
    if found is None:
        raise KeyError(f"rank {rank} is not in this document")
    seen = at_cache(document, memory)
    shown = next(r for r in seen.ranks if r.rank == rank)
    figure = _Figure(shown, rows_at(level, seen, shown, dtype), level, dtype).build()
    figure["layout"]["xaxis"]["title"]["text"] = f"Arithmetic intensity, FLOP per byte of {MEMORIES[memory]}"
    figure["layout"]["meta"] |= {"memory_level": memory, "memory_levels": memories_of(found)}
    return figure


class _Figure:
    def __init__(self, rank: Rank, rows: list[Row], level: str, dtype: str | None) -> None:
        kernels, roofs = subject(rank)
        roofs = plausible(roofs)
        points, absent = place([r.kernel for r in rows])
        self.kernels, self.roofs, self.points, self.absent = kernels, roofs, points, dict(absent)
        self.rows, self.level, self.dtype = rows, level, dtype
        self.all = whole(rank, dtype)
        self.memory = roofs.memory or Ceiling()
        drawn = (rows[p.row].dtypes for p in points)
        self.flats = flats_of(roofs, frozenset().union(*drawn))
        top = max(
            [f.datasheet or f.practical or 0.0 for f in self.flats] + [p.flop_per_s for p in points],
            default=0.0,
        )
        # The unit of the tables beside it.
        self.scale, self.unit = (1e9, "GFLOP/s") if roofs.kind == "cpu" else (1e12, "TFLOP/s")
        self.x0, self.x1 = self._x_range()
        self.y0, self.y1 = self._y_range(top)

    def build(self) -> dict[str, Any]:
        return {"data": [*self._roof_traces(), *self._point_traces()], "layout": self._layout()}

    def _x_range(self) -> tuple[float, float]:
        ridges = [r for f in self.flats for r in (f.ridge_datasheet, f.ridge_practical) if r]
        xs = [p.ai for p in self.points] + ridges
        return (min(xs) / 3, max(xs) * 3) if xs else (0.1, 1000.0)

    def _y_range(self, top: float) -> tuple[float, float]:
        """Every roof and every point that matters: see the constants above; what is lower is counted."""
        if not top:
            return 1e-3, 1e3
        slow, low = self._below(top)
        if slow:
            self.absent["below"] = slow
        roofs = [_height(f) / 10 for f in self.flats if f.used]
        return min([low, *roofs]) / 2.5 / self.scale, top * 2 / self.scale

    def _below(self, top: float) -> tuple[int, float]:
        """How many of the slowest points are left below the frame, and the rate of the next."""
        slowest = sorted(self.points, key=lambda p: p.flop_per_s)
        total = sum(p.kernel.time_us for p in slowest)
        spent = 0.0
        for i, p in enumerate(slowest):
            spent += p.kernel.time_us
            if p.flop_per_s > top / 10**_DECADES or spent > _NEGLIGIBLE * total:
                return i, p.flop_per_s
        return 0, top / 1e3

    def _roof_traces(self) -> list[dict[str, Any]]:
        roofs = self.flats or ([Flat([], None, None, "", True, None, None)] if self.memory.practical else [])
        traces = []
        for f in roofs:
            for kind, width in (("datasheet", 1.0), ("practical", 2.5)):
                start = self.x0 if f.used else self._last_ridge(kind)
                xs, ys = line(start, self.x1, getattr(f, kind), getattr(self.memory, kind))
                if xs:
                    traces.append(self._roof_trace(f, kind, width, xs, ys))
        return traces

    def _last_ridge(self, kind: str) -> float:
        """Where a roof that is not used leaves the slope that the used ones have drawn already."""
        ridges = [getattr(f, f"ridge_{kind}") or 0.0 for f in self.flats if f.used]
        return max(ridges, default=0.0) or self.x0

    def _roof_trace(
        self, f: Flat, kind: str, width: float, xs: list[float], ys: list[float]
    ) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines",
            "name": f"{', '.join(f.dtypes) or 'memory'} {kind}",
            "x": xs,
            "y": [y / self.scale for y in ys],
            "line": {"width": width, "dash": "solid" if f.used else "dot"},
            "hoverinfo": "skip",
            "meta": {"role": "roof", "kind": kind, "dtypes": f.dtypes, "used": f.used},
        }

    def _point_traces(self) -> list[dict[str, Any]]:
        order = {r: i for i, r in enumerate(REGIMES)}
        regimes = sorted({p.kernel.regime for p in self.points}, key=lambda r: order.get(r, len(order)))
        return [self._points(r, [p for p in self.points if p.kernel.regime == r]) for r in regimes]

    def _points(self, regime: str, points: list[Point]) -> dict[str, Any]:
        longest = self.points[0].kernel.time_us
        total = sum(k.time_us for k in self.kernels)
        if self.level == "run":
            total = sum(r.total_us for r in self.rows)
        return {
            "type": "scatter",
            "mode": "markers",
            "name": regime,
            "x": [p.ai for p in points],
            "y": [p.flop_per_s / self.scale for p in points],
            "customdata": [self._told(p, total) for p in points],
            "hovertemplate": "%{customdata[1]}<extra></extra>",
            "marker": {
                "symbol": [SYMBOLS.get(p.kernel.origin, "x") for p in points],
                "size": [max(_SMALLEST, _BIGGEST * math.sqrt(p.kernel.time_us / longest)) for p in points],
                "sizemode": "diameter",
            },
            "meta": {"role": "points", "regime": regime},
        }

    def _told(self, p: Point, total_us: float) -> list[Any]:
        """What the page knows of a point: its row, hover, label, percent of the datasheet, and, above the
        kernel groups, the rows of the kernel table that it speaks for."""
        row = self.rows[p.row]
        told = [p.row, hover(p, total_us, row.about), _label(p.kernel, row.label), self._of_datasheet(p)]
        return [row.members[0], *told[1:]] if self.level == "kernel" else [*told, list(row.members)]

    def _of_datasheet(self, p: Point) -> float | None:
        """Percent of the datasheet roof at this intensity; null when no roof of its dtype is known."""
        peak = (self.roofs.compute.get(p.kernel.dtype or "") or Ceiling()).datasheet
        slope = self.memory.datasheet
        known = [v for v in (peak, slope and slope * p.ai) if v]
        return round(100 * p.flop_per_s / min(known), 2) if peak and known else None

    def _layout(self) -> dict[str, Any]:
        return {
            "xaxis": _axis("Arithmetic intensity, FLOP per byte of device memory", self.x0, self.x1),
            "yaxis": _axis(f"Achieved, {self.unit}", self.y0, self.y1),
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": "select",
            "shapes": self._ridges(),
            "meta": self._meta(),
        }

    def _ridges(self) -> list[dict[str, Any]]:
        at = [f.ridge_practical or f.ridge_datasheet for f in self.flats if f.used]
        return [
            {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
            for x in at
            if x
        ]

    def _meta(self) -> dict[str, Any]:
        counts = {k: n for k, n in self.absent.items() if k != "below"}
        return {
            "unit": self.unit,
            "scale": self.scale,
            "device": html.escape(self.roofs.name or "", quote=False) or None,
            "roofs": [f.as_dict() for f in self.flats],
            "memory": {
                "datasheet": self.memory.datasheet,
                "practical": self.memory.practical,
                "origin": self.memory.origin,
            },
            "level": self.level,
            "noun": NOUNS[self.level],
            "dtype": self.dtype,
            "dtypes": dtypes_of(self.kernels),
            "centroid": self._centroid(),
            "coverage_pct": None if self.all.coverage_pct is None else round(self.all.coverage_pct, 2),
            "n_groups": len(self.rows),
            "n_plotted": len(self.points),
            "not_plotted": [{"reason": r, "count": n, "text": REASONS[r]} for r, n in counts.items()],
            "not_plotted_count": sum(counts.values()),
            "below_frame": self.absent.get("below", 0),
            "note": None if self.flats else "no compute roof is known for this device",
        }

    def _centroid(self) -> dict[str, float] | None:
        """Where all of the rank's known work lies; ``None`` where it has no place."""
        found, _ = place([self.all.kernel])
        return {"ai": found[0].ai, "flop_per_s": found[0].flop_per_s} if found else None


def _height(f: Flat) -> float:
    return f.practical or f.datasheet or 0.0


def _axis(title: str, low: float, high: float) -> dict[str, Any]:
    return {"type": "log", "range": [math.log10(low), math.log10(high)], "title": {"text": title}}


def _label(k: Kernel, given: str | None) -> str:
    """The few characters beside a large point: what is given, or the name without its template arguments."""
    head = given or (k.short_name or k.name).split("‹")[0].split("<")[0].strip() or k.name
    return html.escape(head if len(head) <= _LABEL else head[: _LABEL - 1] + "…", quote=False)
