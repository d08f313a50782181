"""One screen about an analysed run, from the JSON of ``GET /api/v1/runs/{id}/analysis``."""

from __future__ import annotations

import statistics
import textwrap
from typing import Any

from rooflight.regimes.advice import WITHHELD, advice

Json = dict[str, Any]
WIDTH = 100


def lines(document: Json) -> list[str]:
    """Device, step time, regime, what to do first, and the three biggest kernels of the first rank."""
    rank = document["ranks"][0]
    return [
        f"device     {device(rank)}",
        f"step time  {step_time(rank)}",
        f"regime     {regime(rank)}",
        *first(rank),
        f"quality    {quality(rank)}",
        *biggest(rank),
    ]


def device(rank: Json) -> str:
    """Name of the first device; a recording without GPU work speaks of the host CPU."""
    if rank["cpu"]:
        name = printable(rank["cpu"]["name"] or "unknown CPU")
        return f"{name} (no GPU work was recorded: the CPU is the device)"
    names = [figures["name"] or "unknown GPU" for figures in rank["devices"].values()]
    return printable(", ".join(dict.fromkeys(names))) or "none"


def steps(rank: Json) -> list[Json]:
    return list(rank["cpu"]["steps"] if rank["cpu"] else rank["steps"])


def step_time(rank: Json) -> str:
    """Median over the counted steps."""
    times = [step["step_time_us"] for step in steps(rank)]
    if not times:
        return "no steps were recorded"
    return f"{statistics.median(times) / 1000:.3f} ms (median of {len(times)} steps)"


def regime(rank: Json) -> str:
    """The regime with its confidence, or why there is none."""
    subject = rank["cpu"] or rank
    if subject["regime"]:
        return f"{subject['regime']} ({subject['regime_confidence']} confidence)"
    return f"none: {rank['verdict_withheld'] or subject['regime_reason'] or 'no verdict'}"


def first(rank: Json) -> list[str]:
    """What to do first, from the regime."""
    subject = rank["cpu"] or rank
    withheld = rank["verdict_withheld"] is not None
    text = WITHHELD if withheld else advice(subject["regime"], on_cpu=bool(rank["cpu"]))
    return textwrap.wrap(text, WIDTH, initial_indent="first      ", subsequent_indent=" " * 11)


def quality(rank: Json) -> str:
    return "; ".join([rank["grade"], *rank["grade_reasons"]])


def rows(rank: Json) -> list[Json]:
    """The kernel groups, or the CPU's ops, by total time."""
    found = rank["cpu"]["ops"] if rank["cpu"] else rank["kernels"]
    return sorted(found, key=lambda row: -row["time_us"])


def biggest(rank: Json, count: int = 3) -> list[str]:
    """One line a row: share of the time, regime, part of the roof that is reached, name."""
    total = sum(row["time_us"] for row in rows(rank)) or 1.0
    return ["biggest    share  of roof  regime         name"] + [
        f"           {100 * row['time_us'] / total:4.1f} %  {_fraction(row['roof_fraction']):>7}"
        f"  {row['regime']:<13}  {printable(name(row))[:60]}"
        for row in rows(rank)[:count]
    ]


def name(row: Json) -> str:
    """An op of the CPU carries its shapes: they tell its rows apart."""
    short = row["short_name"] or row["name"]
    return f"{short} {row['input_dims']}" if row["kind"] == "op" and row["input_dims"] else str(short)


def _fraction(value: float | None) -> str:
    # A bound of 0 is none: no work was counted that a known roof limits.
    return "–" if not value else f"{100 * value:.1f} %"


def printable(text: str) -> str:
    """Names come from outside: control characters do not reach the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
