"""``rooflight compare``: two runs in, where their difference comes from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rooflight.cli.analyze import jobs, read_calibration, refuse_late, saved, trace_files
from rooflight.cli.terminal import Terminal, of_stream
from rooflight.errors import Refused
from rooflight.protocol import Document, encode

if TYPE_CHECKING:
    from rooflight.comparison import Comparison

FORMATS = ("table", "json", "md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a trace, a folder with those of all ranks, a stored timeline or the JSON of `rooflight analyze`"
    parser.add_argument("a", type=Path, metavar="A", help=f"the run to compare with: {what}")
    parser.add_argument("b", type=Path, metavar="B", help="the run in question, likewise")
    parser.add_argument("--gpu", metavar="NAME", help="the GPU both ran on, when the traces do not tell")
    parser.add_argument(
        "--calibration", type=Path, metavar="FILE", help="measured ceilings of that device (JSON)"
    )
    parser.add_argument(
        "--salvage", action="store_true", help="keep what a cut-off trace still holds; no verdict is given"
    )
    parser.add_argument(
        "-j", "--jobs", type=jobs, metavar="N", help="analyse so many files at a time (default: one per CPU)"
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="write to this file")


def run(args: argparse.Namespace) -> int:
    """Analyse both, compare, print; refusals are raised as :class:`rooflight.errors.Refused`."""
    a, b = (document_in(path, args) for path in (args.a, args.b))
    from rooflight.comparison import compare

    write(compare(a, b), args.format, args.output)
    return 0


def document_in(path: Path, args: argparse.Namespace, *, gpu: str = "--gpu") -> Document:
    """The analysis in ``path``, or of the traces there; ``gpu`` is the option that names their device."""
    files, calibration = trace_files([path]), read_calibration(args.calibration)
    if len(files) == 1 and (found := saved(files[0])) is not None:
        refuse_late(found, {gpu: args.gpu, "--calibration": args.calibration})
        return found
    from rooflight import analysis

    options = analysis.Options(calibrations=() if calibration is None else (calibration,))
    result = analysis.analyze_files(
        files, gpu=args.gpu, options=options, jobs=args.jobs, salvage=args.salvage
    )
    return result.document


def render(comparison: Comparison, fmt: str, terminal: Terminal | None = None) -> bytes:
    """The comparison in one of :data:`FORMATS`; ``terminal`` shapes the table."""
    if fmt == "json":
        return encode(comparison.document) + b"\n"
    from rooflight.cli.compared import table
    from rooflight.cli.compared_markdown import markdown

    text = markdown(comparison) if fmt == "md" else table(comparison, terminal)
    # A name may hold half a surrogate pair, which UTF-8 has no bytes for.
    return text.encode("utf-8", "backslashreplace")


def write(comparison: Comparison, fmt: str, output: Path | None) -> None:
    """To the file, or to standard output in the characters and colours that it can show."""
    if output is None:
        sys.stdout.buffer.write(render(comparison, fmt, of_stream(sys.stdout)))
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(render(comparison, fmt))
    except OSError as e:
        raise Refused(f"cannot write: {e.strerror}", where=str(output), hint="give -o another path") from e
