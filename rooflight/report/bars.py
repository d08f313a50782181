"""Bars of time as SVG in percent: they fill what width there is, and their colour is a class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rooflight.metrics import METRICS
from rooflight.protocol import IDLE_PARTS, PARTS, REGIMES, Parts
from rooflight.regimes.steps import GROUPS
from rooflight.report.markup import Html, join, tag
from rooflight.report.summary import ms

INK = "ink"
NAMES = {p: METRICS[f"part.{p}"].label for p in PARTS}
MEANING = {p: METRICS[f"part.{p}"].explanation for p in PARTS}
#: Hatched stripes, which every page with bars defines once.
HATCH = tag(
    "svg",
    tag(
        "defs",
        tag(
            "pattern",
            tag("rect", width="2.1", height="5", cls="hatch-line"),
            id="hatch", width="5", height="5", patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
        ),
    ),
    width="0", height="0", aria_hidden="true",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A filled stretch of a bar: ``x`` and ``w`` in percent of the axis, ``us`` its time."""

    part: str
    us: float
    x: float
    w: float

    @property
    def end(self) -> float:
        return self.x + self.w


def stack(parts: Parts, axis_us: float, order: Sequence[str] = PARTS) -> list[Piece]:
    """The parts of one wall side by side; parts of no time take no place."""
    found, at = [], 0.0
    for part in order:
        us = float(getattr(parts, part))
        if us > 0 and axis_us > 0:
            found.append(Piece(part, us, 100 * at / axis_us, 100 * us / axis_us))
            at += us
    return found


def draw(pieces: Iterable[Piece], y: int, height: int) -> Html:
    """The rectangles of a bar that lies; what only waits is hatched."""
    return join(_draw(p, {"x": _pct(p.x), "width": _pct(p.w), "y": y, "height": height}) for p in pieces)


def draw_upright(pieces: Iterable[Piece], width: int) -> Html:
    """The rectangles of a bar that stands."""
    return join(
        _draw(p, {"x": 0, "width": width, "y": _pct(100 - p.end), "height": _pct(p.w)}) for p in pieces
    )


def swatch(part: str) -> Html:
    """The little square beside the name of a part or a regime."""
    return tag("i", cls=f"sw {colour(part)}{' idle' if part in IDLE_PARTS else ''}")


def chip(part: str) -> Html:
    """Square and name of a part or a regime; one that we do not know is shown as it came."""
    return tag("span", swatch(part), NAMES.get(part, part), cls="chip")


def colour(part: str) -> str:
    """The class that gives a part or a regime its colour."""
    regime = GROUPS.get(part, part)
    return f"r-{regime if regime in REGIMES or regime == INK else 'unknown'}"


def meter(pct: float, part: str = INK) -> Html:
    """A thin bar for a share of at most 100 %."""
    filled = tag("rect", cls="fg", width=_pct(min(100.0, max(0.0, pct))), height=6, rx=1)
    ground = tag("rect", cls="bg", width="100%", height=6, rx=1)
    return tag("svg", ground, filled, cls=f"bar {colour(part)}", aria_hidden="true")


def _draw(p: Piece, box: dict[str, str | float]) -> Html:
    return tag("g", *_layers(p, box), cls=colour(p.part))


def _layers(p: Piece, box: dict[str, str | float]) -> Iterator[Html]:
    if p.part != INK:
        yield tag("title", f"{NAMES[p.part]} {ms(p.us)}")
    yield tag("rect", cls="f", **box)
    if p.part in IDLE_PARTS:
        yield tag("rect", cls="hatched", **box)


def _pct(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"
