"""FLOPs and bytes of recorded ops: value or None, with origin and reason.  See docs/costs.md.

A new family is a new module: name it in FAMILIES, and its formulas sign themselves in.
"""

from __future__ import annotations

import importlib

from rooflight.cost.estimate import estimate, is_known_op
from rooflight.cost.model import INFERRED, MEASURED, MODELLED, UNKNOWN, Cost, OpCall

FAMILIES = (
    "gemm",
    "quantized",
    "conv",
    "attention",
    "attention_libraries",
    "rnn",
    "moe",
    "rope",
    "state_space",
    "norm",
    "softmax",
    "quantization",
    "elementwise",
    "reduction",
    "pool",
    "loss",
    "random_numbers",
    "ranges",
    "index",
    "sparse",
    "sorting",
    "fft",
    "copy",
    "optimizer",
    "collective",
    "memory",
    "triton",
    "composite",
)

for _family in FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")

__all__ = [
    "FAMILIES",
    "INFERRED",
    "MEASURED",
    "MODELLED",
    "UNKNOWN",
    "Cost",
    "OpCall",
    "estimate",
    "is_known_op",
]
