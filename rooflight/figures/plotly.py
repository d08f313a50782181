"""Figures as plotly draws them in a notebook, in the light colours of the pages (extra ``notebook``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflight.errors import MissingExtra
from rooflight.figures.colours import light

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HATCH = {"shape": "/", "size": 5, "solidity": 0.3}


def drawn(figure: dict[str, Any]) -> Figure:
    """A figure of this package as a plotly figure; :class:`~rooflight.errors.MissingExtra` without plotly."""
    try:
        from plotly.graph_objects import Figure
    except ImportError as e:
        raise MissingExtra("plotly is needed for figures: pip install 'rooflight[notebook]'") from e
    return Figure(data=[_painted(t) for t in figure["data"]], layout=_laid_out(figure["layout"]))


def _painted(trace: dict[str, Any]) -> dict[str, Any]:
    paint = {"roof": _roof, "points": _points, "bar": _bar}[trace["meta"]["role"]]
    return trace | paint(trace)


def _roof(trace: dict[str, Any]) -> dict[str, Any]:
    return {"line": {**trace["line"], "color": light("ink-2" if trace["meta"]["used"] else "ink-3")}}


def _points(trace: dict[str, Any]) -> dict[str, Any]:
    line = {"color": light("surface"), "width": 1}
    color = light(trace["meta"]["regime"])
    return {"marker": {**trace["marker"], "color": color, "opacity": 0.82, "line": line}, "showlegend": True}


def _bar(trace: dict[str, Any]) -> dict[str, Any]:
    marker: dict[str, Any] = {"color": light(trace["meta"]["regime"])}
    if trace["meta"]["idle"]:
        marker["pattern"] = {**_HATCH, "fgcolor": light("surface")}
    return {"marker": marker}


def _laid_out(layout: dict[str, Any]) -> dict[str, Any]:
    axis = {"gridcolor": light("line"), "linecolor": light("line-strong"), "zeroline": False}
    ridge = {"color": light("line-strong"), "width": 1, "dash": "dash"}
    lines = [{**shape, "line": ridge} for shape in layout.get("shapes", [])]
    return layout | {
        "paper_bgcolor": light("surface"),
        "plot_bgcolor": light("surface"),
        "font": {"color": light("ink-2"), "size": 12},
        "xaxis": {**axis, **_ticks(layout["xaxis"])},
        "yaxis": {**axis, **_ticks(layout["yaxis"])},
        "shapes": lines,
        "showlegend": layout["meta"].get("kind") in (None, "steps"),
        "dragmode": "zoom",
        "legend": {"itemsizing": "constant"},
    }


def _ticks(axis: dict[str, Any]) -> dict[str, Any]:
    """One tick a decade: plotly's own are 2 and 5 in between, which no eye can tell apart."""
    return axis | ({"dtick": 1} if axis.get("type") == "log" else {})
