"""``rooflight prices``: a price list of your own from the files that a provider publishes."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from rooflight.cli.terminal import safe
from rooflight.errors import Refused
from rooflight.prices.days import day
from rooflight.prices.guards import Judged
from rooflight.prices.importing import KINDS, import_prices
from rooflight.prices.own import write

_SHOWN = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, their form, and where the list goes."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="as downloaded; plain or gzipped")
    parser.add_argument(
        "--from",
        dest="kind",
        choices=KINDS,
        required=True,
        help="aws: the price list of AmazonEC2 (CSV or JSON); azure: pages of the Retail Prices API; "
        "csv: a list in our own form, or in that of SkyPilot or gpuhunt",
    )
    parser.add_argument("--provider", help="whose prices they are, for a CSV that does not say so")
    parser.add_argument("--region", action="append", metavar="REGION", help="keep only this one; repeatable")
    parser.add_argument("--date", type=_day, help="day of the prices, if not that of the file (YYYY-MM-DD)")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="write the list to this file")
    parser.epilog = (
        "Fetches nothing. The list is for `rooflight gpus instances --prices` and ROOFLIGHT_PRICES."
    )


def run(args: argparse.Namespace) -> int:
    """Write what is believed, tell of the rest; 2 when nothing is left."""
    judged = _in_regions(
        import_prices(args.files, args.kind, provider=args.provider, day=args.date), args.region
    )
    for line in report(judged):
        print(safe(line), file=sys.stderr)
    if not judged.kept:
        print("rooflight prices: no usable price: nothing is written", file=sys.stderr)
        return 2
    _write(judged, args.output)
    return 0


def report(judged: Judged) -> Iterator[str]:
    """What was kept, skipped and rejected, in lines."""
    names = {(i.provider, i.name) for i in judged.kept}
    yield f"kept {_counted(len(judged.kept), 'price')} of {_counted(len(names), 'instance')}"
    if judged.skipped:
        yield f"skipped {_counted(judged.skipped.total(), 'row')}"
        yield from (f"  {count:>9,}  {why}" for why, count in judged.skipped.most_common())
    if judged.rejected:
        yield f"rejected {_counted(len(judged.rejected), 'price')}"
        yield from (f"  {rejection}" for rejection in judged.rejected[:_SHOWN])
        if len(judged.rejected) > _SHOWN:
            yield f"  and {len(judged.rejected) - _SHOWN:,} more"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _in_regions(judged: Judged, regions: list[str] | None) -> Judged:
    """The prices of some regions; all regions were there to judge them by."""
    if not regions:
        return judged
    wanted = {r.lower() for r in regions}
    kept = tuple(i for i in judged.kept if i.region.lower() in wanted)
    left = len(judged.kept) - len(kept)
    return Judged(kept, +(judged.skipped + type(judged.skipped)({"another region": left})), judged.rejected)


def _write(judged: Judged, out: Path | None) -> None:
    text = io.StringIO()
    write(judged.kept, text)
    if out is None:
        sys.stdout.write(text.getvalue())
        return
    try:
        out.write_text(text.getvalue(), encoding="utf-8")
    except OSError as e:
        raise Refused(f"cannot write: {e.strerror}", where=str(out), hint="give -o another path") from e


def _day(text: str) -> str:
    if not day(text):
        raise argparse.ArgumentTypeError("no day as in 2026-11-30")
    return text
