"""``rooflight gpus instances``: what rents GPUs, by price per GPU and hour."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from rooflight.cli.terminal import Terminal, fit, of_stream, safe
from rooflight.errors import Refused

if TYPE_CHECKING:
    from rooflight.prices import Instance

_OPTIONS = ("gpu", "provider", "region", "prices")
_COLUMNS = (
    "USD/GPU h",
    "USD/h",
    "GPUs",
    "bf16/USD",
    "GPU",
    "provider",
    "instance",
    "region",
    "as of",
    "source",
)
_RIGHT = 4  # so many columns are figures
_LONGEST = 36
_DASH = "–"


def add_arguments(group: argparse._ArgumentGroup) -> None:
    """What to list, and whose prices."""
    group.add_argument("--gpu", metavar="NAME", help="only those with this GPU")
    group.add_argument("--provider", help="only those of this provider")
    group.add_argument("--region", help="only prices of this region")
    group.add_argument(
        "--prices",
        action="append",
        type=Path,
        metavar="FILE",
        help="a price list of your own (CSV), which wins over ours; repeatable, the later wins",
    )


def refuse_options(args: argparse.Namespace) -> None:
    """Say so when an option was meant for this list, and the list was not asked for."""
    given = [o for o in _OPTIONS if getattr(args, o) is not None]
    if given:
        raise Refused(f"--{given[0]} goes with `rooflight gpus instances`")


def run(args: argparse.Namespace) -> int:
    """Print the instances asked for; none is no error."""
    # Prices are read by those who ask for them: the catalogue alone answers at once.
    from rooflight.prices import Wanted, meant, read_own, selected, with_own
    from rooflight.prices.entry import entry

    own = [read_own(path) for path in args.prices or ()]
    wanted = Wanted(None if args.gpu is None else meant(args.gpu), args.provider, args.region)
    found = selected(with_own(*own), wanted)
    if args.format == "json":
        print(json.dumps([entry(i) for i in found], ensure_ascii=False))
        return 0
    terminal = of_stream(sys.stdout)
    sys.stdout.write(terminal.final("\n".join(_table(found, terminal)) + "\n"))
    return 0


def _table(found: list[Instance], terminal: Terminal) -> Iterator[str]:
    if not found:
        yield "no instance of this kind is known"
        return
    sources: dict[str, int] = {}
    rows = [_COLUMNS, *(_row(i, sources.setdefault(_source(i), len(sources) + 1)) for i in found)]
    widths = [max(len(r[c]) for r in rows) for c in range(len(_COLUMNS))]
    for r in rows:
        cells = [
            cell.rjust(width) if c < _RIGHT else cell.ljust(width)
            for c, (cell, width) in enumerate(zip(r, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    yield "On-demand prices; bf16/USD: dense peak TFLOP/s for each USD per hour; – unknown."
    yield "As of snapshot or undated: the source does not tell the day. Sources:"
    for source, number in sources.items():
        yield from textwrap.wrap(
            f"[{number}] {source}", terminal.width, initial_indent="  ", subsequent_indent="      "
        )


def _row(instance: Instance, source: int) -> tuple[str, ...]:
    from rooflight.prices import price_per_gpu_hour
    from rooflight.prices.entry import bf16_tflops_per_usd

    per_usd = bf16_tflops_per_usd(instance)
    return (
        _usd(price_per_gpu_hour(instance)),
        _usd(instance.usd_per_hour),
        _DASH if instance.gpu_count is None else str(instance.gpu_count),
        _DASH if per_usd is None else f"{per_usd:.1f}",
        instance.gpu_id,
        *(fit(t, _LONGEST) if t else _DASH for t in (instance.provider, instance.name, instance.region)),
        instance.date or _DASH,
        f"[{source}]",
    )


def _source(instance: Instance) -> str:
    """Where a price comes from: the user's file before what the file says of itself."""
    from rooflight.prices.model import BUILT_IN

    if instance.origin == BUILT_IN:
        return safe(instance.source)
    return safe(f"your {instance.origin}" + (f": {instance.source}" if instance.source else ""))


def _usd(amount: Decimal | None) -> str:
    return _DASH if amount is None else f"{amount:,.4f}"
