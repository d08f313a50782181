"""Figures as SVG files: drawn here, without a browser, from the same figures as everywhere else."""

from rooflight.report.svg.bars import lying, standing
from rooflight.report.svg.roofline import roofline

__all__ = ["lying", "roofline", "standing"]
