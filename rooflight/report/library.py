"""plotly.min.js as the installed wheel carries it, found without importing plotly."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rooflight.errors import MissingExtra


def plotly_js() -> str:
    """The script; :class:`~rooflight.errors.MissingExtra` when plotly is not installed."""
    spec = importlib.util.find_spec("plotly")
    places = list(spec.submodule_search_locations or ()) if spec else []
    path = Path(places[0]) / "package_data" / "plotly.min.js" if places else None
    if path is None or not path.is_file():
        raise MissingExtra(
            "plotly is needed to draw the roofline of a report: pip install 'rooflight[notebook]'"
        )
    return path.read_text("utf-8")
