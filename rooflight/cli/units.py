"""The option that says what a step holds."""

from __future__ import annotations

import argparse


def add_units(parser: argparse.ArgumentParser) -> None:
    """``--units NAME=NUMBER``, as often as there are units."""
    parser.add_argument(
        "--units",
        action="append",
        metavar="NAME=N",
        help="what one rank's step holds, as tokens=8192: units per second are told from it; repeatable",
    )


def units(args: argparse.Namespace) -> dict[str, float]:
    """What was given; :class:`~rooflight.errors.Refused` when it cannot be."""
    if not args.units:
        return {}
    from rooflight.results.throughput import written

    return written(args.units)
