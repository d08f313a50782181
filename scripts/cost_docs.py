#!/usr/bin/env python3
"""Writes docs/costs.md from the registry of cost models: ``scripts/cost_docs.py > docs/costs.md``."""
# ruff: noqa: E501 - the rows of a Markdown table cannot be broken

from __future__ import annotations

import inspect
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import rooflight.cost
from rooflight.cost.registry import CostModel, models

HEAD = """# Costs: FLOPs and bytes of an op

`rooflight cost` and the analysis answer FLOPs and device-memory bytes for a recorded call, each a number or
unknown, never a guess. A multiply-add is 2 FLOPs. FLOPs of matrix ops are exact; those of vector ops are
conventions, so that two recordings compare. Bytes are the least that must move: each operand is read once (an
expanded dim once, overlapping windows as far as they differ), each result is written once.

An **origin** says where the figures come from: `modelled` (shapes and types), `inferred` (a compiler's kernel,
from its arguments; a CUDA graph's, from an eager recording), `measured` (copies, whose bytes are recorded), `unknown`. A **reason** says what is missing:

| reason | meaning |
|---|---|
| `unknown_op` | no formula for this op |
| `no_shapes` | the recording has no dims (record_shapes was off, or a list was too long for it) |
| `no_values`, `no_strides_recorded` | older recordings have no concrete values, on which the size depends |
| `dtype_unknown` | the element type is not recorded: lists of tensors, recordings of 2021 and before |
| `composite` | built of ops that are costed themselves; the figure, where there is one, is a lower bound |
| `data_dependent`, `lengths_are_values`, `routing_is_values` | the work depends on values |
| `no_convention` | FLOPs of this op have no agreed count |
| `roles_unknown`, `fused` | a compiler's kernel: the roles of its arguments, or its FLOPs, cannot be seen |
| `bad_shapes`, `too_many_arguments`, `out_of_range`, `overlapping_strides` | what is recorded does not fit the op |
| `collective_unknown`, `direction_unknown`, `no_bytes` | a message or copy that does not say what it moves |
| `aux_kernel` | a helper beside the op's main kernel, which has its FLOPs |
| `dO of ...`, `dims of ...` | dims that the row lacks are those of this other row of the same call |
| `execution trace` | inputs or the size of the result are from the execution trace that was given beside the trace |

When one op launches several kernels, those of the op's family share its cost by duration; each gradient's kernels
of a convolution take the share of that gradient; other kernels have 0 FLOPs and unknown bytes.
"""


def section(family: str, entries: list[CostModel]) -> str:
    """One family: its module's words, then each formula."""
    module = sys.modules[f"rooflight.cost.{family}"]
    lines = [f"## {family.replace('_', ' ')}", "", inspect.cleandoc(module.__doc__ or ""), ""]
    for entry in entries:
        names = ", ".join(f"`{n}`" for n in [*entry.names, *(f"{p}…" for p in entry.prefixes)])
        unit = ", matrix roof" if entry.matrix else ""
        lines += [f"**{names}** ({entry.family}{unit})  ", inspect.cleandoc(entry.doc), ""]
    return "\n".join(lines)


def render() -> str:
    """The whole page."""
    by_module = groupby(models(), key=lambda m: m.formula.__module__.rsplit(".", 1)[-1])
    known = {family: list(entries) for family, entries in by_module}
    return HEAD + "\n" + "\n".join(section(f, known[f]) for f in rooflight.cost.FAMILIES)


if __name__ == "__main__":
    sys.stdout.write(render())
