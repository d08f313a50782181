#!/usr/bin/env python3
"""Writes docs/costs.md and docs/costs/ from the registry of cost models: ``cost_docs.py [FOLDER]``."""

from __future__ import annotations

import inspect
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import rooflight.cost
from rooflight.cost.reasons import REASONS
from rooflight.cost.registry import CostModel, models

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """# Costs: FLOPs and bytes of an op

`rooflight cost` and the analysis answer FLOPs and device-memory bytes for a recorded call, each a number or
unknown, never a guess. A multiply-add is 2 FLOPs. FLOPs of matrix ops are exact; those of vector ops are
conventions, so that two recordings compare. Bytes are the least that must move: each operand is read once (an
expanded dim once, overlapping windows as far as they differ), each result is written once.

`rooflight cost --explain` tells how a cost comes about, for events on standard input or for one op:

    rooflight cost --explain aten::mm '[[64,128],[128,32]]' --dtype bf16 --gpu h100-sxm

An **origin** says where the figures come from: `modelled` (shapes and types), `inferred` (a compiler's
kernel, from its arguments; a graph's, from an eager recording; a kernel whose launch was not recorded, from
the same part of the program elsewhere; an elementwise kernel, from name and grid), `measured` (copies, whose
bytes are recorded; [counters](counters.md)), `unknown`.

When one op launches several kernels, those of the op's family share its cost by duration; each gradient's
kernels of a convolution take the share of that gradient; other kernels have 0 FLOPs and unknown bytes.

## Families

Each page has the formulas of its family, what they leave out, and whose convention they follow.
"""
REASONS_HEAD = """
## Reasons

A reason says what is missing, or what a figure rests on.
"""


def family(name: str, entries: list[CostModel]) -> str:
    """The page of one family: its module's words, then each formula."""
    words = inspect.cleandoc(sys.modules[f"rooflight.cost.{name}"].__doc__ or "")
    more = "The conventions of all families are on [the first page](../costs.md)."
    head = f"# {title(name)}\n\n{words}\n\n{more}\n"
    return "\n".join([head, "## Formulas\n", *map(formula, entries)])


def formula(entry: CostModel) -> str:
    """The ops, their family and arguments, and the rule."""
    names = ", ".join(f"`{n}`" for n in [*entry.names, *(f"{p}…" for p in entry.prefixes)])
    unit = ", matrix roof" if entry.matrix else ""
    order = f"  \nArguments: {', '.join(entry.params)}" if entry.params else ""
    return f"**{names}** ({entry.family}{unit}){order}  \n{inspect.cleandoc(entry.doc)}\n"


def title(name: str) -> str:
    """How a family is called in a heading."""
    return f"Costs: {name.replace('_', ' ')}"


def index(known: dict[str, list[CostModel]]) -> str:
    """The conventions, the families and the reasons."""
    rows = [f"- [{name.replace('_', ' ')}](costs/{name}.md): {_first_line(name)}" for name in known]
    table = ["| reason | meaning | where it could be had |", "|---|---|---|"]
    table += [f"| `{word}` | {r.meaning} | {r.remedy} |" for word, r in REASONS.items()]
    return "\n".join([HEAD, *rows, REASONS_HEAD, *table]) + "\n"


def _first_line(name: str) -> str:
    words = inspect.cleandoc(sys.modules[f"rooflight.cost.{name}"].__doc__ or "")
    return words.split("\n\n")[0].split(".  ")[0].replace("\n", " ").rstrip(".") + "."


def pages() -> dict[str, str]:
    """Every page by its path in docs/."""
    by_module = groupby(models(), key=lambda m: m.formula.__module__.rsplit(".", 1)[-1])
    signed = {name: list(entries) for name, entries in by_module}
    known = {name: signed[name] for name in rooflight.cost.FAMILIES}
    return {"costs.md": index(known)} | {f"costs/{n}.md": family(n, e) for n, e in known.items()}


def write(folder: Path) -> None:
    """Write the pages; those of families that are no more go."""
    made = pages()
    for old in (folder / "costs").glob("*.md"):
        if f"costs/{old.name}" not in made:
            old.unlink()
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
