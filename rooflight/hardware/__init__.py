"""Device models: the catalogue, which entry a device is, and its roofs.

Roofs are imported when they are asked for: the catalogue alone answers from the command line at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflight.hardware.candidates import Resolution, resolve
from rooflight.hardware.catalogue import gpus
from rooflight.hardware.dense import peaks
from rooflight.hardware.model import Gpu
from rooflight.hardware.names import alike, find

if TYPE_CHECKING:
    from rooflight.hardware.roofs import ceilings, cpu_roofs, observe

__all__ = [
    "Gpu",
    "Resolution",
    "alike",
    "ceilings",
    "cpu_roofs",
    "find",
    "gpus",
    "observe",
    "peaks",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in ("ceilings", "cpu_roofs", "observe"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rooflight.hardware import roofs

    return getattr(roofs, name)
