"""The options that give a price: of one GPU and hour, or of an instance."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rooflight.errors import Refused

if TYPE_CHECKING:
    from rooflight.prices import Instance
    from rooflight.prices.rate import Rate


def add_price(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The arguments that :func:`rate` takes."""
    group = parser.add_argument_group("money")
    group.add_argument("--price", metavar="AMOUNT", help="for one GPU and hour, as 3.60 or 3.60/h")
    group.add_argument("--currency", metavar="CUR", help="of --price (default: USD)")
    group.add_argument("--instance", metavar="NAME", help="at the price of this instance, per GPU")
    group.add_argument("--provider", help="of the instances, only this provider's")
    group.add_argument("--region", help="prices of this region only")
    group.add_argument(
        "--prices", action="append", type=Path, metavar="FILE", help="a price list of your own (CSV)"
    )
    return group


def rate(args: argparse.Namespace) -> Rate | None:
    """The price that was given, or that of the instance; an instance is never guessed."""
    from rooflight.prices.rate import rate_given, rate_of

    if args.price is not None and args.instance is not None:
        raise Refused("--price and --instance both give a price", hint="give one of them")
    if args.price is not None:
        return rate_given(args.price, args.currency)
    if args.currency is not None:
        raise Refused("--currency is that of --price", hint="give the price; lists are in USD")
    return None if args.instance is None else rate_of(instance(args))


def instance(args: argparse.Namespace) -> Instance:
    """The instance that is named."""
    from rooflight.prices.rate import instance_meant

    return instance_meant(args.instance, among=listed(args))


def listed(args: argparse.Namespace) -> list[Instance]:
    """The instances that the options leave."""
    from rooflight.prices import Wanted, read_own, selected, with_own

    own = [read_own(path) for path in args.prices or ()]
    return selected(with_own(*own), Wanted(None, args.provider, args.region))
