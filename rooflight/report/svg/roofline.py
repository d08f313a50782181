"""The roofline as SVG, from the figure of :mod:`rooflight.figures.roofline`."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Any

from rooflight.figures.points import rate
from rooflight.report.markup import Html, join, tag
from rooflight.report.svg.labels import Box, Dot, placed
from rooflight.report.svg.scale import LogScale, digits
from rooflight.report.svg.sheet import known_regime, line, sheet, width_of, words
from rooflight.report.text import fit

WIDTH, HEIGHT = 960, 580
LEFT, RIGHT, TOP, BOTTOM = 66.0, 816.0, 66.0, 500.0
_LABELS = 10
_ABSENT_WIDTH = 135
_MARKUP = re.compile(r"<[^<>]{0,8}>")
_SYMBOLS = {"square": "measured", "circle": "modelled", "diamond": "inferred", "x": "unknown"}


def roofline(figure: dict[str, Any], title: str) -> str:
    """The figure as a file of its own.  Points that are not in the frame are counted under it."""
    return _Drawing(figure, title).file()


@dataclass(frozen=True, slots=True)
class _Mark:
    """A point in pixels, and what is said of it."""

    regime: str
    symbol: str
    dot: Dot
    said: str


class _Drawing:
    def __init__(self, figure: dict[str, Any], title: str) -> None:
        layout = figure["layout"]
        self.meta: dict[str, Any] = layout["meta"]
        self.layout, self.title = layout, title
        (x0, x1), (y0, y1) = (layout[axis]["range"] for axis in ("xaxis", "yaxis"))
        self.x, self.y = LogScale(x0, x1, LEFT, RIGHT), LogScale(y0, y1, BOTTOM, TOP)
        self.roofs = [t for t in figure["data"] if t["meta"]["role"] == "roof"]
        self.points = [t for t in figure["data"] if t["meta"]["role"] == "points"]

    def file(self) -> str:
        return sheet(WIDTH, HEIGHT, self.title, self._said(), self._parts())

    def _said(self) -> str:
        m = self.meta
        on = f" on {html.unescape(m['device'])}" if m["device"] else ""
        told = "; ".join(
            f"{', '.join(r['dtypes'])} {rate(r['practical'] or r['datasheet'])}FLOP/s" for r in m["roofs"]
        )
        roofs = f"Compute roofs: {told}." if told else "No compute roof is known."
        return f"Roofline{on}: {self._count()}. {roofs}"

    def _count(self) -> str:
        m = self.meta
        many = "" if m["n_groups"] == 1 else "s"
        return f"{m['n_plotted']:,} of {m['n_groups']:,} {m['noun']}{many} drawn"

    def _parts(self) -> Iterator[Html]:
        yield words(16, 26, self.title, "ink h")
        yield words(16, 46, f"{self._count()}; area is time")
        yield from self._axes()
        yield from (self._roof(t) for t in self.roofs)
        yield from self._ridges()
        yield from self._roof_names()
        yield from self._marks()
        yield from self._centroid()
        yield from self._labels()
        yield from self._key()
        for i, text in enumerate(wrap(self._absent(), _ABSENT_WIDTH)[:2]):
            yield words(16, BOTTOM + 54 + 15 * i, text, "mute")

    def _axes(self) -> Iterator[Html]:
        for value, text in self.x.ticks():
            yield line(self.x.at(value), TOP, self.x.at(value), BOTTOM, "grid")
            yield words(self.x.at(value), BOTTOM + 16, text, "mute", "middle")
        for value, text in self.y.ticks():
            yield line(LEFT, self.y.at(value), RIGHT, self.y.at(value), "grid")
            yield words(LEFT - 6, self.y.at(value) + 4, text, "mute", "end")
        middle = (TOP + BOTTOM) / 2
        yield words((LEFT + RIGHT) / 2, BOTTOM + 34, self.layout["xaxis"]["title"]["text"], "soft", "middle")
        yield words(0, 0, self.layout["yaxis"]["title"]["text"], "soft", "middle",
                    transform=f"translate(18 {middle:g}) rotate(-90)")  # fmt: skip

    def _roof(self, t: dict[str, Any]) -> Html:
        used = t["meta"]["used"]
        points = " ".join(f"{x:.2f},{y:.2f}" for x, y in self._clipped(t))
        return tag(
            "polyline",
            tag("title", t["name"]),
            points=points,
            cls=f"roof {'used' if used else 'idle-roof'}",
            stroke_width=t["line"]["width"],
            stroke_dasharray=None if used else "2 3",
        )

    def _clipped(self, roof: dict[str, Any]) -> list[tuple[float, float]]:
        """A roof in pixels; a slope that comes from below the frame begins at its foot."""
        found = [(self.x.at(x), self.y.at(y)) for x, y in zip(roof["x"], roof["y"], strict=True)]
        (x0, y0), (x1, y1) = found[:2]
        if y0 > BOTTOM > y1:
            found[0] = (x0 + (y0 - BOTTOM) / (y0 - y1) * (x1 - x0), BOTTOM)
        return found

    def _ridges(self) -> Iterator[Html]:
        for i, shape in enumerate(self.layout["shapes"]):
            x = self.x.at(shape["x0"])
            yield line(x, TOP, x, BOTTOM, "edge", stroke_dasharray="4 4")
            text = f"ridge {digits(shape['x0'])} FLOP/B"
            fits = x + width_of(text) + 8 < RIGHT
            yield words(x + (4 if fits else -4), BOTTOM - 6 - 14 * i, text, "soft", None if fits else "end")

    def _roof_names(self) -> Iterator[Html]:
        """Beside the ends of the flat roofs, pushed apart where they are close."""
        free = -math.inf
        for roof in sorted(self.meta["roofs"], key=lambda r: -(r["practical"] or r["datasheet"])):
            y = max(self.y.at((roof["practical"] or roof["datasheet"]) / self.meta["scale"]), free)
            for i, (text, cls) in enumerate(self._roof_lines(roof)):
                yield words(RIGHT + 8, y + 4 + 14 * i, text, cls)
                free = y + 14 * (i + 1) + 6
        yield from self._memory_name(free)

    def _roof_lines(self, roof: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield fit(", ".join(roof["dtypes"]), 22), "ink b"
        for kind in ("practical", "datasheet"):
            if roof[kind]:
                yield f"{digits(roof[kind] / self.meta['scale'])} {kind}", "soft"
        if not roof["used"]:
            yield "not used here", "mute"

    def _memory_name(self, free: float) -> Iterator[Html]:
        memory = self.meta["memory"]
        lines = [f"{rate(memory[kind])}B/s {kind}" for kind in ("practical", "datasheet") if memory[kind]]
        name = {"dram": "Memory"}.get(self.meta["memory_level"], self.meta["memory_level"].upper())
        y = max(free + 6, (TOP + BOTTOM) / 2)
        for i, text in enumerate([name, *lines] if lines else []):
            yield words(RIGHT + 8, y + 14 * i, text, "soft" if i else "ink b")

    def _drawn(self) -> list[_Mark]:
        """The points in the frame, the largest first."""
        marks = [self._mark(t, i) for t in self.points for i in self._in_frame(t)]
        return sorted(marks, key=lambda m: (-m.dot.r, m.dot.x, m.dot.y))

    def _in_frame(self, t: dict[str, Any]) -> list[int]:
        return [i for i, y in enumerate(t["y"]) if self.y.holds(y)]

    def _mark(self, t: dict[str, Any], i: int) -> _Mark:
        _, hover, label, *_ = t["customdata"][i]
        x, y = self.x.at(t["x"][i]), self.y.at(t["y"][i])
        dot = Dot(x, y, t["marker"]["size"][i] / 2, html.unescape(label))
        return _Mark(t["meta"]["regime"], t["marker"]["symbol"][i], dot, _plain(hover))

    def _marks(self) -> Iterator[Html]:
        for m in self._drawn():
            cls = f"point r-{known_regime(m.regime)}"
            yield _mark(m.symbol, m.dot.x, m.dot.y, m.dot.r, cls, tag("title", m.said))

    def _centre(self) -> tuple[float, float] | None:
        """Where all the known work lies, in pixels."""
        c = self.meta["centroid"]
        if c is None or self.meta["level"] == "run" or not self.y.holds(c["flop_per_s"] / self.meta["scale"]):
            return None
        return self.x.at(c["ai"]), self.y.at(c["flop_per_s"] / self.meta["scale"])

    def _centroid(self) -> Iterator[Html]:
        if (centre := self._centre()) is not None:
            (x, y), c = centre, self.meta["centroid"]
            said = f"All known work: {rate(c['flop_per_s'])}FLOP/s, {digits(c['ai'])} FLOP/B"
            arms = (line(x - 7, y, x + 7, y, "centre"), line(x, y - 7, x, y + 7, "centre"))
            yield tag("g", tag("title", said), *arms, stroke_width=2)

    def _centroid_box(self) -> Iterator[Box]:
        if (centre := self._centre()) is not None:
            x, y = centre
            yield Box(x - 8, y - 8, x + 8, y + 8)

    def _labels(self) -> Iterator[Html]:
        dots = [m.dot for m in self._drawn()]
        frame = Box(LEFT, TOP, RIGHT, BOTTOM - 24)
        for label in placed(dots, [*self._roof_boxes(), *self._centroid_box()], frame, _LABELS):
            dot = label.dot
            if label.led:
                edge = math.copysign(dot.r, label.y - dot.y)
                near = math.copysign(7, dot.y - label.y)
                yield line(dot.x, dot.y + edge, dot.x, label.y + near, "idle-roof")
            yield words(label.x, label.y + 4, dot.text, "ink", "end" if label.end else None)

    def _roof_boxes(self) -> Iterator[Box]:
        """The roofs as chains of small boxes: no label crosses one."""
        for t in self.roofs:
            for (x0, y0), (x1, y1) in pairwise(self._clipped(t)):
                n = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / 8))
                for i in range(n + 1):
                    x, y = x0 + (x1 - x0) * i / n, y0 + (y1 - y0) * i / n
                    yield Box(x - 3, y - 3, x + 3, y + 3)

    def _key(self) -> Iterator[Html]:
        """Regimes and origins that are drawn, above the frame at the right."""
        x = RIGHT + 136.0
        items = [
            (t["meta"]["regime"], "square", f"r-{known_regime(t['meta']['regime'])}") for t in self.points
        ]
        symbols = {s for t in self.points for s in t["marker"]["symbol"]}
        items += [(name, s, "r-ink") for s, name in _SYMBOLS.items() if s in symbols]
        for text, symbol, cls in reversed(items):
            shown = fit(text, 20)
            x -= width_of(shown) + 26
            mark = _mark(symbol, x, 42, 5, cls, Html())
            yield join([mark, words(x + 10, 46, shown)])

    def _absent(self) -> str:
        gone = [f"{n['text']}: {n['count']:,}" for n in self.meta["not_plotted"]]
        if self.meta["below_frame"]:
            gone.append(f"below the frame: {self.meta['below_frame']:,}")
        return f"Not on the chart: {'; '.join(gone)}." if gone else "Everything has its place on the chart."


def _mark(symbol: str, x: float, y: float, r: float, cls: str, said: Html) -> Html:
    """A mark whose area is that of a circle of radius ``r``, so that symbols compare."""
    if symbol == "circle":
        return tag("circle", said, cx=x, cy=y, r=r, cls=cls)
    half = r * math.sqrt(math.pi) / 2
    turned = {"diamond": 45, "x": 0, "square": 0}.get(symbol, 0)
    more = {"transform": f"rotate({turned} {x:.2f} {y:.2f})"} if turned else {}
    box = {"x": x - half, "y": y - half, "width": 2 * half, "height": 2 * half}
    outline = {"stroke_dasharray": "2 2"} if symbol == "x" else {}
    return tag("rect", said, cls=cls, **box, **more, **outline)


def _plain(hover: str) -> str:
    """The words of a hover label as text."""
    return html.unescape(_MARKUP.sub("", hover.replace("<br>", "; ")))
