"""``rooflight gpus``: the hardware catalogue, the entry that a name resolves to, or instances and prices."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from rooflight.cli import instances
from rooflight.errors import Refused
from rooflight.hardware import alike, find, gpus
from rooflight.hardware.clocks import FASTEST_MHZ
from rooflight.hardware.entry import at_clock_entry, entry
from rooflight.hardware.model import Gpu

_COLUMNS = ("id", "bf16", "fp16", "fp8", "fp32", "fp64", "GB/s", "ridge", "name")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The name asked for and the form of the answer."""
    parser.add_argument(
        "name",
        nargs="?",
        help="a device name as the driver reports it, or an id; `instances` lists what rents GPUs",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument(
        "--clock", type=float, metavar="MHZ", help="of one entry: its peaks at this SM clock besides"
    )
    instances.add_arguments(parser.add_argument_group("with `instances`"))


def run(args: argparse.Namespace) -> int:
    """Print one entry, or all; a name that resolves to none is answered with null, not with an error."""
    if args.name == "instances":
        return instances.run(args)
    instances.refuse_options(args)
    _check(args)
    found = list(gpus()) if args.name is None else [find(args.name)]
    if args.format == "json":
        told = [_entry(g, args.clock) if g else None for g in found]
        print(json.dumps(told if args.name is None else told[0], ensure_ascii=False))
        return 0
    known = [g for g in found if g is not None]
    if not known:
        _unknown(args.name)
        return 0
    for line in _table(known) if args.name is None else _sheet(known[0], args.clock):
        print(line)
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.clock is None:
        return
    if args.name is None:
        raise Refused("--clock goes with the name of a GPU")
    if not 0 < args.clock <= FASTEST_MHZ:
        raise Refused(f"no SM clock in MHz: {args.clock:g}", hint=f"one up to {FASTEST_MHZ}")


def _entry(gpu: Gpu, clock: float | None) -> dict[str, Any]:
    return entry(gpu) if clock is None else {**entry(gpu), "at_clock": at_clock_entry(gpu, clock)}


def _unknown(name: str) -> None:
    print("unknown: no roof is assumed for it (dense peaks are never taken from another model)")
    candidates = alike(name)
    if candidates:
        print("it may be one of these; the whole name or the id tells:")
        for gpu in candidates:
            print(f"  {gpu.id:<20} {entry(gpu)['name']}")


def _table(entries: list[Gpu]) -> Iterator[str]:
    rows = [_COLUMNS, *(_row(g) for g in entries)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(_COLUMNS))]
    for r in rows:
        cells = [r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:-1], widths[1:-1], strict=True))]
        yield "  ".join([*cells, r[-1]])
    yield "Dense peaks in TFLOP/s; ridge in FLOP per byte for bf16, else fp16; – unknown."


def _row(gpu: Gpu) -> tuple[str, ...]:
    told = entry(gpu)
    peaks, ridge = told["peaks_tflops"], told["ridge"]
    figures = [peaks.get(d) for d in ("bf16", "fp16", "fp8", "fp32", "fp64")]
    figures += [gpu.mem_bw_gbs, ridge.get("bf16") or ridge.get("fp16")]
    return (gpu.id, *map(_figure, figures), told["name"])


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}" if value < 1_000 else f"{value:.0f}"


def _sheet(gpu: Gpu, clock: float | None) -> Iterator[str]:
    told = entry(gpu)
    observed = at_clock_entry(gpu, clock)["peaks_tflops"] if clock is not None else {}
    yield f"{told['name']} ({gpu.id}), {gpu.arch}, {gpu.compute}"
    for dtype, peak in told["peaks_tflops"].items():
        measured = gpu.efficiency.get(dtype)
        reached = f", {100 * measured:.0f} % reached in measurements" if measured else ""
        ridge = told["ridge"].get(dtype)
        at = f", {_figure(observed.get(dtype))} TFLOP/s at {clock:g} MHz" if clock is not None else ""
        yield f"  {dtype:<6} {_figure(peak):>8} TFLOP/s  ridge {_figure(ridge)} FLOP/byte{reached}{at}"
    yield f"  memory {_figure(gpu.mem_bw_gbs):>8} GB/s"
    if gpu.notes:
        yield f"  note: {gpu.notes}"
    yield from (f"  source: {s}" for s in gpu.sources)
