"""The Jinja environment of the pages.  Autoescape is on for everything; no template marks text as safe."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.pages import numbers, vocabulary
from app.pages.columns import columns
from app.pages.query import KEPT_BY_PRICE, KEPT_BY_WHATIF
from app.pages.run_view import ROWS_OF_STEPS
from app.pages.static import plotly_js
from app.resources import folder
from rooflight.figures.points import REASONS
from rooflight.report.waits import NOTHING_OPEN


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The environment, made once."""
    env = Environment(
        loader=FileSystemLoader(folder("web") / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        colour=vocabulary.colour,
        regime=vocabulary.name,
        geo=lambda v: f"{v:.3f}".rstrip("0").rstrip("."),
        tick=lambda v: f"{v:,.6g}".replace(",", numbers.THIN),
        pct=numbers.percent,
        fx=numbers.fixed,
        ms=lambda us, decimals=2: numbers.column(us / 1_000, decimals),
        sig=numbers.significant,
        count=numbers.count,
        size=numbers.size,
    )
    env.globals.update(
        static=static_url,
        NB=numbers.NB,
        IDLE=vocabulary.IDLE,
        ORIGINS=vocabulary.ORIGINS,
        ABSENT=REASONS,
        columns=columns,
        ROWS_OF_STEPS=ROWS_OF_STEPS,
        NOTHING_OPEN=NOTHING_OPEN,
        KEPT_BY_PRICE=KEPT_BY_PRICE,
        KEPT_BY_WHATIF=KEPT_BY_WHATIF,
    )
    return env


def render(name: str, **values: Any) -> str:
    """One page or fragment as HTML."""
    return environment().get_template(name).render(**values)


def static_url(path: str) -> str:
    """The address of a static file with its version, so that browsers may keep it for good."""
    return f"/static/{path}?v={_version(path)}"


@lru_cache(maxsize=64)
def _version(path: str) -> str:
    file = plotly_js() if path == "plotly.min.js" else folder("web") / "static" / Path(path)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
