#!/usr/bin/env python3
"""Writes docs/catalogue.md from the hardware catalogue: ``scripts/hardware_docs.py > docs/catalogue.md``."""
# ruff: noqa: E501 - the rows of a Markdown table cannot be broken

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rooflight.hardware import Gpu, gpus
from rooflight.hardware.catalogue import limits, measurements
from rooflight.hardware.dense import fp16_accumulate, peaks, ridges

HEAD = """# The hardware catalogue

Made by `scripts/hardware_docs.py` from `rooflight/hardware/specs`; [Hardware](hardware.md) says how a device finds its
entry and its roofs. An empty cell is unknown.

Peaks are **dense**, in TFLOP/s (int8: TOP/s), with fp32 accumulation, as the datasheet states them; fp64 and fp32 are those of
the matrix units where they take the type, else of the ordinary ones. *fp16 sums*: fp16 and fp8 products added up in fp16.
*Ridge*: FLOP per byte at which compute and memory take equal time, for bf16, else fp16. *Link*: per direction / in total.
*Confidence* is that of the half-precision peak and the bandwidth: high when both were read in a public source.
"""
PEAKS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "mxfp6", "fp4")
DASH = ""


def figure(value: float | None) -> str:
    """As it was collected, without a float's needless zeros."""
    return DASH if value is None else f"{value:g}" if value < 1e5 else str(value)


def row(cells: list[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def table(heads: list[str], rows: list[list[str]], *, texts: int = 1) -> Iterator[str]:
    """A table whose first ``texts`` columns are words and the rest figures."""
    yield row(heads)
    yield row(["---"] * texts + ["---:"] * (len(heads) - texts))
    yield from map(row, rows)
    yield ""


def vendor(name: str, entries: list[Gpu]) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    known = [d for d in PEAKS if any(d in peaks(g) for g in entries)]
    yield from table(
        ["id", "model", *known, "fp16 sums", "GB/s", "ridge"], [peak_row(g, known) for g in entries], texts=2
    )
    units = "CU" if name == "AMD" else "units" if name == "Intel" else "SM"
    yield from table(
        [
            "id",
            "device",
            "compute",
            "memory",
            "link",
            "confidence",
            units,
            "boost MHz",
            "matrix MHz",
            "GB",
            "MiB reported",
            "L2 MiB",
            "LLC MiB",
            "GB/s link",
            "PCIe",
            "W",
        ],
        [machine_row(g) for g in entries],
        texts=6,
    )
    yield f"### {name}: the ordinary units"
    yield ""
    yield from table(
        ["id", "fp64", "fp32", "fp16", "bf16"],
        [
            [f"`{g.id}`", *(figure(g.vector.get(d)) for d in ("fp64", "fp32", "fp16", "bf16"))]
            for g in entries
        ],
    )
    yield f"### {name}: sources"
    yield ""
    yield from (line for g in entries for line in sources(g))


def peak_row(gpu: Gpu, dtypes: list[str]) -> list[str]:
    known, ridge = peaks(gpu), ridges(gpu)
    sums = ", ".join(f"{d} {figure(p)}" for d, p in fp16_accumulate(gpu).items())
    return [
        f"`{gpu.id}`",
        f"{gpu.name} {gpu.variant}".strip(),
        *(figure(known.get(d)) for d in dtypes),
        sums,
        figure(gpu.mem_bw_gbs),
        figure(ridge.get("bf16", ridge.get("fp16"))),
    ]


def machine_row(gpu: Gpu) -> list[str]:
    link = "" if gpu.link_gbs_per_dir is None else figure(gpu.link_gbs_per_dir)
    total = "" if gpu.link_gbs_total is None else f" / {figure(gpu.link_gbs_total)}"
    return [
        f"`{gpu.id}`",
        gpu.device_unit,
        gpu.compute,
        gpu.mem_type or DASH,
        gpu.link or DASH,
        gpu.confidence,
        *map(
            figure,
            (gpu.sm_count, gpu.boost_mhz, gpu.tensor_mhz, gpu.mem_gb, gpu.mem_mib, gpu.l2_mib, gpu.llc_mib),
        ),
        link + total,
        figure(gpu.pcie_gen),
        figure(gpu.tdp_w),
    ]


def sources(gpu: Gpu) -> Iterator[str]:
    """What its figures rest on, the names that find it, and what is to be known of it."""
    yield f"- `{gpu.id}` ({gpu.date}, {gpu.condition}): {'; '.join(gpu.sources)}."
    if gpu.names:
        yield f"  Reported as {', '.join(f'`{n}`' for n in gpu.names)}."
    if gpu.notes:
        yield f"  Note: {gpu.notes}."
    yield ""


def of_an_sm() -> Iterator[str]:
    yield "## What one SM or CU holds"
    yield ""
    yield "By compute capability or gfx name; threads, blocks and registers of 32 bits that are resident at most."
    yield ""
    rows = [
        [
            f"`{r['compute']}`",
            "; ".join(r["sources"]) + f" ({r['date']})",
            str(r["threads"]),
            figure(r.get("blocks")),
            figure(r.get("registers")),
            str(r["shared_kib"]),
            str(r["warp_size"]),
        ]
        for r in limits()
    ]
    yield from table(
        ["compute", "source", "threads", "blocks", "registers", "shared KiB", "warp"], rows, texts=2
    )


def measured() -> Iterator[str]:
    yield "## What was reached"
    yield ""
    yield "The practical roof of a model is the median of the fractions that stand for it (*roof*); others stand for none."
    yield ""
    rows = [
        [
            f"`{m.gpu_id}`",
            m.metric,
            m.use,
            f"{m.conditions}; {m.source} ({m.confidence})",
            f"{figure(m.measured)} {m.unit}",
            figure(m.peak_used),
            figure(m.fraction),
        ]
        for m in measurements()
    ]
    yield from table(
        ["id", "measurement", "roof", "conditions and source", "reached", "of", "fraction"], rows, texts=4
    )


def render() -> str:
    """The whole page."""
    lines = [HEAD]
    for name in dict.fromkeys(g.vendor for g in gpus()):
        lines += vendor(name, [g for g in gpus() if g.vendor == name])
    lines += [*of_an_sm(), *measured()]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
