"""``rooflight report``: an analysis as one HTML file, to send on or to keep."""

from __future__ import annotations

import argparse
from pathlib import Path

from rooflight.cli.analyze import add_recordings, analysed, put
from rooflight.cli.price import add_price, rate
from rooflight.cli.units import add_units, units

DEFAULT_OUTPUT = Path("report.html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings(parser)
    parser.add_argument(
        "--rank", type=int, metavar="N", help="the rank whose figures are shown (default: the first)"
    )
    add_units(parser)
    add_price(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=DEFAULT_OUTPUT,
        metavar="OUT",
        help=f"write to this file (default: {DEFAULT_OUTPUT})",
    )


def run(args: argparse.Namespace) -> int:
    """Analyse, write, name the file; refusals are raised as :class:`rooflight.errors.Refused`."""
    from rooflight.report.html import Options, report

    cost, held = rate(args), units(args)  # what is mistyped is answered before the traces are read
    document = analysed(args)
    document.units_per_step = held or document.units_per_step
    page = report(document, Options(rank=args.rank, rate=cost))
    put(page.encode("utf-8"), args.output)
    print(args.output)
    return 0
