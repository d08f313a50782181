"""Figures of an analysis, as plotly draws them: for a notebook (extra ``notebook``).

Each takes an :class:`~rooflight.Analysis` or its document and gives a ``plotly.graph_objects.Figure``;
:class:`~rooflight.errors.MissingExtra` without plotly.  The same figures as plain dicts, for which nothing
has to be installed, are made by the modules: the service, the report and the SVG draw those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflight.figures import bars
from rooflight.figures.levels import LEVELS
from rooflight.figures.plotly import drawn
from rooflight.figures.roofline import roofline as _roofline
from rooflight.figures.walls import rank_of
from rooflight.protocol import Document

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from rooflight.analysis import Analysis

__all__ = ["LEVELS", "regimes", "roofline", "steps", "waterfall"]


def roofline(
    analysis: Analysis | Document,
    level: str = "kernel",
    dtype: str | None = None,
    *,
    rank: int | None = None,
    memory: str = "dram",
) -> Figure:
    """The roofline.  A point is what ``level`` says: a ``kernel`` group, an ``op``, a ``module``, a ``step``,
    or each rank (``run``).

    ``dtype`` keeps the work in one number type; ``rank`` is a rank's number, the first when ``None``.
    ``memory`` is what a byte is counted at: ``dram``, or ``l2`` and ``l1`` where hardware counters tell.
    Raises ValueError for a level or memory that there is none of, KeyError for such a rank.
    """
    document = analysis if isinstance(analysis, Document) else analysis.document
    return drawn(_roofline(document, rank_of(document, rank).rank, level=level, dtype=dtype, memory=memory))


def waterfall(analysis: Analysis | Document, *, rank: int | None = None) -> Figure:
    """From the wall time of a mean step (or of the recording) down to its kernels and what is attainable."""
    return drawn(bars.waterfall(analysis, rank))


def regimes(analysis: Analysis | Document, *, rank: int | None = None) -> Figure:
    """The wall time by regime, the longest first."""
    return drawn(bars.regimes(analysis, rank))


def steps(analysis: Analysis | Document, *, rank: int | None = None) -> Figure:
    """Every step as a stack of its parts."""
    return drawn(bars.steps(analysis, rank))
