"""``rooflight figures``: a chart of an analysis as an SVG file, drawn without a browser or plotly."""

from __future__ import annotations

import argparse
from pathlib import Path

from rooflight.cli.analyze import add_recordings, analysed, put
from rooflight.errors import Refused
from rooflight.figures import bars
from rooflight.figures.caches import MEMORIES
from rooflight.figures.levels import LEVELS
from rooflight.figures.roofline import roofline
from rooflight.figures.walls import rank_of
from rooflight.protocol import Document
from rooflight.report import svg
from rooflight.report.text import fit

_TITLE = 90
KINDS = {"roofline": "Roofline", "waterfall": "Where the time goes", "regimes": "Regimes", "steps": "Steps"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings(parser)
    parser.add_argument("--kind", choices=tuple(KINDS), default="roofline", help="default: roofline")
    parser.add_argument(
        "--level", choices=LEVELS, default=LEVELS[0], help="what a point of the roofline is (default: kernel)"
    )
    parser.add_argument("--dtype", metavar="TYPE", help="only the work of the roofline in this number type")
    parser.add_argument(
        "--memory",
        choices=tuple(MEMORIES),
        default="dram",
        help="what a byte of the roofline is counted at; l2 and l1 need --counters (default: dram)",
    )
    parser.add_argument("--rank", type=int, metavar="N", help="the rank that is shown (default: the first)")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="default: KIND.svg")


def run(args: argparse.Namespace) -> int:
    """Analyse, draw, name the file; refusals are raised as :class:`rooflight.errors.Refused`."""
    document = analysed(args)
    try:
        rank = rank_of(document, args.rank).rank
    except KeyError as e:
        raise Refused(str(e.args[0]), hint="give another --rank") from e
    drawing = draw(document, rank, args.kind, args.level, args.dtype, args.memory)
    output = args.output or Path(f"{args.kind}.svg")
    put(drawing.encode("utf-8"), output)
    print(output)
    return 0


def draw(
    document: Document,
    rank: int,
    kind: str,
    level: str = LEVELS[0],
    dtype: str | None = None,
    memory: str = "dram",
) -> str:
    """A figure of one of :data:`KINDS` as SVG; ``level``, ``dtype`` and ``memory`` are the roofline's."""
    title = _title(KINDS[kind], document, rank)
    if kind == "roofline":
        return svg.roofline(roofline(document, rank, level=level, dtype=dtype, memory=memory), title)
    if kind == "steps":
        return svg.standing(bars.steps(document, rank), title)
    return svg.lying((bars.waterfall if kind == "waterfall" else bars.regimes)(document, rank), title)


def _title(what: str, document: Document, rank: int) -> str:
    of = f", rank {rank}" if len(document.ranks) > 1 else ""
    return fit(f"{what}: {document.source}{of}", _TITLE)
