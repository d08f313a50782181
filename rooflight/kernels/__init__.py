"""Kernel names: what family a kernel is of, which element type, which unit, which collective."""

from __future__ import annotations

from rooflight.kernels.communication import is_communication
from rooflight.kernels.model import KernelName
from rooflight.kernels.names import COLLECTIVES, FAMILIES, MATRIX_FAMILIES, classify

__all__ = ["COLLECTIVES", "FAMILIES", "MATRIX_FAMILIES", "KernelName", "classify", "is_communication"]
