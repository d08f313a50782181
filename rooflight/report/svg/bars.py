"""Waterfall, regimes and steps as SVG, from the figures of :mod:`rooflight.figures.bars`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rooflight.report.markup import Html, join, tag
from rooflight.report.svg.scale import LinearScale
from rooflight.report.svg.sheet import known_regime, line, sheet, width_of, words

WIDTH = 960
LEFT, RIGHT, TOP = 176.0, 790.0, 66.0
_ROW, _BAR = 26.0, 14.0
#: Of the drawing that stands.
FLOOR, SIDE, END = 380.0, 66.0, 936.0
_NOTHING = "Nothing in this recording tells where its time went."


def lying(figure: dict[str, Any], title: str) -> str:
    """Bars one under the other (waterfall, regimes): label, bar, milliseconds, share of the wall."""
    rows, meta = figure["data"], figure["layout"]["meta"]
    bottom = TOP + _ROW * max(1, len(rows))
    said = "; ".join(f"{t['name']} {t['x'][0]:,.4g} ms" for t in rows) or _NOTHING
    return sheet(WIDTH, round(bottom + 46), title, said, _lying(rows, meta, title, bottom))


def _lying(rows: list[dict[str, Any]], meta: dict[str, Any], title: str, bottom: float) -> Iterator[Html]:
    yield from _head(title, meta["of"] if rows else _NOTHING)
    top = max((t["base"][0] + t["x"][0] for t in rows), default=0.0)
    if not _drawable(top):
        return
    scale = LinearScale(top, LEFT, RIGHT)
    for value, text in scale.ticks():
        yield line(scale.at(value), TOP, scale.at(value), bottom, "grid")
        yield words(scale.at(value), bottom + 16, text, "mute", "middle")
    yield words((LEFT + RIGHT) / 2, bottom + 34, "Time, ms", "soft", "middle")
    for i, t in enumerate(rows):
        y = TOP + _ROW * i + (_ROW - _BAR) / 2
        start, ms = t["base"][0], t["x"][0]
        box = {"x": scale.at(start), "width": scale.at(ms) - LEFT, "y": y, "height": _BAR}
        yield words(LEFT - 10, y + 11, t["name"], "ink", "end")
        yield _bar(t, box, f"{t['name']}: {ms:,.4g} ms")
        yield words(RIGHT + 80, y + 11, f"{ms:,.3f}", "ink", "end")
        yield words(RIGHT + 146, y + 11, f"{t['meta']['share_pct']:.1f} %", "soft", "end")


def standing(figure: dict[str, Any], title: str) -> str:
    """Stacks side by side (steps)."""
    meta = figure["layout"]["meta"]
    left = meta["n_steps"] - meta["n_shown"]
    said = f"{meta['n_shown']:,} steps" + (f", {left:,} more are not drawn" if left else "")
    if not meta["n_steps"]:
        said = "This recording has no steps."
    return sheet(WIDTH, round(FLOOR + 66), title, said, _standing(figure, title, said))


def _standing(figure: dict[str, Any], title: str, said: str) -> Iterator[Html]:
    rows, meta = figure["data"], figure["layout"]["meta"]
    yield from _head(title, said)
    stacks = [sum(column) for column in zip(*(t["y"] for t in rows), strict=True)]
    if not _drawable(max(stacks, default=0.0)):
        return
    scale = LinearScale(max(stacks), FLOOR, TOP)
    for value, text in scale.ticks():
        yield line(SIDE, scale.at(value), END, scale.at(value), "grid")
        yield words(SIDE - 6, scale.at(value) + 4, text, "mute", "end")
    middle = (TOP + FLOOR) / 2
    yield words(0, 0, "Time, ms", "soft", "middle", transform=f"translate(18 {middle:g}) rotate(-90)")
    pitch = (END - SIDE) / len(stacks)
    yield from _numbers(meta["steps"], pitch)
    foot = [0.0] * len(stacks)
    for t in rows:
        for i, ms in enumerate(t["y"]):
            if ms > 0:
                box = {"x": SIDE + pitch * (i + 0.1), "width": 0.8 * pitch,
                       "y": scale.at(foot[i] + ms), "height": FLOOR - scale.at(ms)}  # fmt: skip
                yield _bar(t, box, f"step {meta['steps'][i]}: {t['name']} {ms:,.4g} ms")
                foot[i] += ms
    yield from _key(rows)


def _numbers(steps: list[int], pitch: float) -> Iterator[Html]:
    """The numbers of the steps, as many as have room."""
    every = max(1, -(-int(max(width_of(str(n)) for n in steps) + 12) // max(1, int(pitch))))
    for i in range(0, len(steps), every):
        yield words(SIDE + pitch * (i + 0.5), FLOOR + 16, str(steps[i]), "mute", "middle")
    yield words((SIDE + END) / 2, FLOOR + 34, "Step", "soft", "middle")


def _key(rows: list[dict[str, Any]]) -> Iterator[Html]:
    x = 16.0
    for t in rows:
        box = {"x": x, "width": 10.0, "y": FLOOR + 45, "height": 10.0}
        yield join([_bar(t, box, t["name"]), words(x + 15, FLOOR + 54, t["name"])])
        x += width_of(t["name"]) + 30


def _drawable(ms: float) -> bool:
    """Whether an axis can end there: no recording is longer than thirty thousand years."""
    return 1e-9 < ms < 1e15


def _head(title: str, quiet: str) -> Iterator[Html]:
    yield words(16, 26, title, "ink h")
    yield words(16, 46, quiet)


def _bar(t: dict[str, Any], box: dict[str, float], said: str) -> Html:
    """A filled stretch; what only waits is hatched."""
    layers = [tag("rect", cls=f"r-{known_regime(t['meta']['regime'])}", **box)]
    if t["meta"]["idle"]:
        layers.append(tag("rect", cls="hatched", **box))
    return tag("g", tag("title", said), *layers)
