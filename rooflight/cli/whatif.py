"""``rooflight whatif``: the same work on another GPU, in another dtype, fused, without waiting."""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rooflight.cli.analyze import jobs
from rooflight.cli.compare import document_in
from rooflight.cli.price import add_price, instance, listed, rate
from rooflight.cli.terminal import Terminal, fit, of_stream, safe
from rooflight.errors import Refused
from rooflight.protocol import encode
from rooflight.report.summary import counted, ms

if TYPE_CHECKING:
    from rooflight.prices import Instance
    from rooflight.scenarios import InstanceCost, KernelForecast, Money, Range, WhatIf

TOP_KERNELS = 12
TOP_INSTANCES = 20
_DASH = "–"
_LABEL = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a trace, a folder with those of all ranks, or the JSON of `rooflight analyze`",
    )
    asked = parser.add_argument_group("what if (all of these combine)")
    asked.add_argument("--gpu", metavar="NAME", help="it ran on this GPU (`rooflight gpus` lists them)")
    asked.add_argument("--dtype", metavar="D", help="in this number type: bf16, fp8, ...")
    asked.add_argument(
        "--roofs-reached", action="store_true", help="every known kernel reached its practical roof"
    )
    asked.add_argument("--fused", action="store_true", help="chains of elementwise kernels were one kernel")
    asked.add_argument(
        "--overlapped", action="store_true", help="communication ran behind compute as far as it fits"
    )
    asked.add_argument("--input-ready", action="store_true", help="input was always there in time")
    price = add_price(parser)
    price.add_argument(
        "--instances", action="store_true", help="all instances that we know, by money per step"
    )
    parser.add_argument("--recorded-on", metavar="NAME", help="the GPU it ran on, if the trace does not tell")
    parser.add_argument(
        "--calibration", type=Path, metavar="FILE", help="measured ceilings of that device (JSON)"
    )
    parser.add_argument(
        "-j", "--jobs", type=jobs, metavar="N", help="analyse so many files at a time (default: one per CPU)"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    """Analyse, ask, print; refusals are raised as :class:`rooflight.errors.Refused`."""
    from rooflight.scenarios import Scenario, whatif
    from rooflight.scenarios.target import roofs_of

    if args.gpu is not None:
        roofs_of(args.gpu)  # a mistyped name is answered before the trace is read
    money = _money(args)
    rented = None if args.instance is None else instance(args)
    instances = listed(args) if args.instances else None
    read_as = argparse.Namespace(
        gpu=args.recorded_on, calibration=args.calibration, salvage=False, jobs=args.jobs
    )
    scenario = Scenario(
        args.gpu, args.dtype, args.roofs_reached, args.fused, args.overlapped, args.input_ready
    )
    document = document_in(args.file, read_as, gpu="--recorded-on")
    found = whatif(document, scenario=scenario, money=money, instances=instances)
    if rented is not None:
        _has(rented, found.gpu_id)
    if args.format == "json":
        sys.stdout.buffer.write(encode(found) + b"\n")
        sys.stdout.buffer.flush()
        return 0
    terminal = of_stream(sys.stdout)
    text = terminal.final("\n".join(table(found, terminal)) + "\n")
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
    return 0


def table(w: WhatIf, term: Terminal) -> Iterator[str]:
    """The answer as lines for ``term``."""
    yield term.strong(fit(w.source, term.width))
    yield safe(f"{w.recorded_gpu or 'an unknown GPU'} → {w.gpu or 'the same'}")
    if w.withheld:
        yield f"The recording allows no verdict ({safe(w.withheld)}): this is no better founded."
    yield ""
    yield from _times(w, term)
    yield from _unknowns(w)
    yield from _kernels(w.per_kernel, term)
    yield from _instances(w.instances, term)
    yield ""
    yield term.strong("Assumed")
    for sentence in w.assumptions or ["Nothing: no other device or change was named."]:
        yield from textwrap.wrap(safe(sentence), term.width, initial_indent="  ", subsequent_indent="    ")


def _times(w: WhatIf, term: Terminal) -> Iterator[str]:
    rows = [("kernel time", w.recorded_kernel_time_us, w.kernel_time_us)]
    if w.step_time_us is not None and w.recorded_step_time_us is not None:
        rows.append(("step (mean)", w.recorded_step_time_us, w.step_time_us))
    if w.recording_us is not None and w.recorded_us is not None:
        rows.append(("recording", w.recorded_us, w.recording_us))
    yield f"  {'':<{_LABEL}}{'recorded':>12}{'low':>12}{'middle':>12}{'high':>12}"
    for label, recorded, r in rows:
        figures = "".join(f"{ms(v):>12}" for v in (recorded, r.low, r.mid, r.high))
        yield f"  {label:<{_LABEL}}{figures}  {_change(r.mid, recorded)}"
        yield f"  {'':<{_LABEL}}{span(recorded, r, term.width - _LABEL - 4)}"
    yield f"  {'':<{_LABEL}}█ recorded, ─ low to high, × middle"
    if w.cost_per_step is not None:
        usd = w.cost_per_step
        yield (
            f"  {'USD/1k steps':<{_LABEL}}{_k(usd.low)} … {_k(usd.mid)} … {_k(usd.high)}"
            f" on {counted(w.devices, 'device')} at {w.usd_per_gpu_hour:g} USD per GPU and hour"
        )


def span(recorded: float, r: Range, width: int) -> str:
    """A line from 0 to the longest time: ``─`` from low to high, ``×`` the middle, ``█`` as recorded."""
    longest = max(recorded, r.high)
    if not 0 < longest < math.inf or width < 2:
        return ""

    def at(value: float) -> int:
        return min(width - 1, round(value / longest * (width - 1)))

    cells = [" "] * width
    cells[at(r.low) : at(r.high) + 1] = "─" * (at(r.high) - at(r.low) + 1)
    cells[at(recorded)] = "█"
    cells[at(r.mid)] = "×"
    return "".join(cells).rstrip()


def _change(mid: float, recorded: float) -> str:
    return f"{100 * (mid / recorded - 1):+.0f} %" if recorded else ""


def _k(usd: float) -> str:
    """Of a thousand steps: one costs too little to read."""
    return f"{1_000 * usd:.3g}"


def _unknowns(w: WhatIf) -> Iterator[str]:
    if w.unknown_share is not None:
        yield f"  {w.unknown_share:.0f} % of the kernel time (middle) rests on unknown costs or links"


def _kernels(rows: Sequence[KernelForecast], term: Terminal) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield term.strong("Kernels that take longest, all launches")
    yield f"  {'ms':>9}  {'low':>9}{'middle':>9}{'high':>9}  {'regime':<14}{'by':<10}kernel · op"
    for k in rows[:TOP_KERNELS]:
        r = k.predicted_us
        figures = "".join(f"{v / 1000:>9.3f}" for v in (r.low, r.mid, r.high))
        name = (k.short_name or k.name) + (f" · {k.op}" if k.op and k.op != k.name else "")
        shown = fit(name, max(16, term.width - 66))
        basis = fit(k.basis, 9)
        yield f"  {k.time_us / 1000:>9.3f}  {figures}  {safe(k.regime):<14}{basis:<10}{shown}"
    if len(rows) > TOP_KERNELS:
        yield f"  and {counted(len(rows) - TOP_KERNELS, 'group', 'more ')}, in the JSON"


def _instances(rows: Sequence[InstanceCost] | None, term: Terminal) -> Iterator[str]:
    if rows is None:
        return
    yield ""
    yield term.strong("Instances by USD for 1,000 steps")
    yield f"  {'low':>10}{'middle':>10}{'high':>10}  {'USD/GPU h':>9}  GPU · instance · region · as of"
    for i in rows[:TOP_INSTANCES]:
        usd = i.cost_per_step
        figures = f"{_DASH:>30}" if usd is None else f"{_k(usd.low):>10}{_k(usd.mid):>10}{_k(usd.high):>10}"
        price = _DASH if i.usd_per_gpu_hour is None else f"{i.usd_per_gpu_hour:.2f}"
        lacks = ", ".join(f"{a} as {b}" for a, b in i.dtype_fallback.items())
        known = "" if i.step_time_us else "its step is unknown"
        what = " · ".join(
            t for t in (i.gpu_id, lacks, known, f"{i.provider} {i.name}", i.region, i.date) if t
        )
        yield f"  {figures}  {price:>9}  {fit(what, max(16, term.width - 45))}"
    if len(rows) > TOP_INSTANCES:
        yield f"  and {len(rows) - TOP_INSTANCES:,} more, in the JSON"


# --- money -----------------------------------------------------------------------------------------


def _money(args: argparse.Namespace) -> Money | None:
    """The price of a GPU and hour in USD, which instances are compared in."""
    from rooflight.scenarios import Money

    found = rate(args)
    if found is None:
        return None
    if found.currency != "USD":
        raise Refused(f"a what-if is priced in USD, not in {found.currency}", hint="give the price in USD")
    return Money(float(found.per_gpu_hour), found.source)


def _has(rented: Instance, gpu_id: str | None) -> None:
    """Refuse the price of another GPU than the time is of."""
    if gpu_id != rented.gpu_id:
        other = f"a {gpu_id}" if gpu_id else "the GPU of the recording, which is not known"
        raise Refused(
            f"{rented.name!r} has a {rented.gpu_id}, not {other}",
            hint=f"ask for --gpu {rented.gpu_id}, or for another instance",
        )
