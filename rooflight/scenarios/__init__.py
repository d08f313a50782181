"""What if: the same work on another GPU, in another dtype, fused, overlapped, without waiting for input.

Pure functions over a document that was analysed: nothing is read again.  What is assumed is in words in the
result, and in docs/whatif.md.
"""

from __future__ import annotations

from rooflight.scenarios.forecast import whatif
from rooflight.scenarios.model import (
    InstanceCost,
    KernelForecast,
    Money,
    Range,
    Scenario,
    StepForecast,
    WhatIf,
)

__all__ = [
    "InstanceCost",
    "KernelForecast",
    "Money",
    "Range",
    "Scenario",
    "StepForecast",
    "WhatIf",
    "whatif",
]
