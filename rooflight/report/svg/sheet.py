"""An SVG file: its size, words for those who do not see it, and its colours in light and dark."""

from __future__ import annotations

from collections.abc import Iterable

from rooflight.figures.colours import tokens
from rooflight.report.markup import Html, style, tag

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
_REGIMES = (
    "compute", "memory", "latency", "communication", "copy", "input", "host", "dependency", "unknown",
)  # fmt: skip
_TEXT = {"ink": "ink", "soft": "ink-2", "mute": "ink-3"}
_STROKES = {"grid": "line", "edge": "line-strong", "used": "ink-2", "idle-roof": "ink-3", "centre": "ink"}
_CHAR = 6.7  # px of a character of 11 px, on the safe side


def sheet(width: int, height: int, title: str, description: str, parts: Iterable[str]) -> str:
    """The whole file.  ``description`` says in words what the drawing shows."""
    drawing = tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        style(_rules()),
        _hatch(),
        tag("rect", cls="paper", width=width, height=height),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing}\n'


def words(
    x: float, y: float, text: str, cls: str = "soft", anchor: str | None = None, **more: str | float
) -> Html:
    """Text; ``anchor`` is middle or end."""
    return tag("text", text, x=x, y=y, cls=cls, text_anchor=anchor, **more)


def line(x1: float, y1: float, x2: float, y2: float, cls: str, **more: str | float) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls, **more)


def width_of(text: str) -> float:
    """About how wide a text of 11 px is."""
    return _CHAR * len(text)


def known_regime(regime: str) -> str:
    """The class of a regime's colour; that of the ink for what is no regime's."""
    return regime if regime in (*_REGIMES, "ink") else "unknown"


def _hatch() -> Html:
    stripe = tag("rect", width=2, height=5, cls="stripe")
    pattern = tag(
        "pattern", stripe, id="hatch", width=5, height=5, patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )  # fmt: skip
    return tag("defs", pattern)


def _rules() -> str:
    plain = (
        f"text{{font:11px {_FONT};font-variant-numeric:tabular-nums}}.h{{font-size:15px;font-weight:600}}"
        ".b{font-weight:600}.point{fill-opacity:.82}.roof{fill:none}.hatched{fill:url(#hatch)}"
    )
    return f"{plain}{_theme(0)}@media(prefers-color-scheme:dark){{{_theme(1)}}}"


def _theme(which: int) -> str:
    colour = {name: pair[which] for name, pair in tokens().items()}
    rules = [f".paper{{fill:{colour['surface']}}}.stripe{{fill:{colour['hatch']}}}"]
    rules += [f".{cls}{{fill:{colour[name]}}}" for cls, name in _TEXT.items()]
    rules += [f".{cls}{{stroke:{colour[name]}}}" for cls, name in _STROKES.items()]
    rules += [f".r-{r}{{fill:{colour[r]}}}" for r in _REGIMES] + [f".r-ink{{fill:{colour['ink-3']}}}"]
    return "".join([*rules, f".point{{stroke:{colour['surface']}}}"])
