"""``rooflight report``: an analysis as one HTML file, to send on or to keep."""

from __future__ import annotations

import argparse
from decimal import Decimal
from pathlib import Path

from rooflight.cli.analyze import add_recordings, analysed, put
from rooflight.prices.amount import NoAmount, usd

DEFAULT_OUTPUT = Path("report.html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings(parser)
    parser.add_argument(
        "--rank", type=int, metavar="N", help="the rank whose figures are shown (default: the first)"
    )
    parser.add_argument(
        "--price",
        type=price,
        metavar="USD",
        help="what a GPU costs an hour, in USD: savings are then told in money, too",
    )
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

    page = report(analysed(args), Options(rank=args.rank, usd_per_gpu_hour=args.price))
    put(page.encode("utf-8"), args.output)
    print(args.output)
    return 0


def price(text: str) -> Decimal:
    """The price that an option gives."""
    try:
        return usd(text, 1)
    except NoAmount as e:
        raise argparse.ArgumentTypeError(str(e)) from e
