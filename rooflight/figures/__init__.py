"""Figures of an analysis, as plotly takes them."""

from rooflight.figures.roofline import roofline

__all__ = ["roofline"]
