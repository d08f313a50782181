"""``rooflight analyze``: traces in, one analysis out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rooflight.calibration import Calibration
from rooflight.cli.markdown import markdown
from rooflight.cli.price import add_price, rate
from rooflight.cli.table import table
from rooflight.cli.terminal import Terminal, of_stream
from rooflight.cli.units import add_units, units
from rooflight.errors import Malformed, Refused, TooLarge
from rooflight.protocol import Document, decode, encode
from rooflight.report.money import priced

#: Of the traces in a folder.
ENDINGS = (".json", ".json.gz", ".zip")
FORMATS = ("table", "json", "html", "md")
_MAX_CALIBRATION_BYTES = 1 << 20
#: How the JSON of `rooflight analyze` begins, and no trace.
_ANALYSIS = b'{"schema_version":'
_MAX_ANALYSIS_BYTES = 1 << 30
#: No device is slower or faster, in TFLOP/s, GB/s or µs; the service takes the same.
_RATES = (1e-9, 1e9)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings(parser)
    add_units(parser)
    add_price(parser)
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT", help="write to this file")
    parser.add_argument(
        "--view",
        choices=("tensorboard",),
        help="instead of the analysis, its steps in the eight classes of the TensorBoard plugin of torch's "
        "profiler, to compare with; as a table or JSON",
    )


def add_recordings(parser: argparse.ArgumentParser) -> None:
    """What to analyse, and how: the arguments that :func:`analysed` takes."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="traces of one run, one per rank, or a folder of them (*.json, *.json.gz, *.zip), and the "
        "execution traces that were recorded beside them; or the JSON of an analysis",
    )
    parser.add_argument("--gpu", metavar="NAME", help="the GPU it ran on, when the trace does not tell")
    parser.add_argument(
        "--calibration", type=Path, metavar="FILE", help="measured ceilings of this device (JSON)"
    )
    parser.add_argument(
        "--eager",
        type=Path,
        metavar="FILE",
        help="a trace of the same program without CUDA graphs, to name the kernels of graphs from",
    )
    parser.add_argument(
        "--counters",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="hardware counters of the same program (ncu --csv, rocprof-compute, rocprofv3, CUPTI): measured "
        "FLOPs and bytes go before formulas; several files are several passes",
    )
    parser.add_argument(
        "--salvage", action="store_true", help="keep what a cut-off trace still holds; no verdict is given"
    )
    parser.add_argument(
        "-j", "--jobs", type=jobs, metavar="N", help="analyse so many files at a time (default: one per CPU)"
    )


def run(args: argparse.Namespace) -> int:
    """Read, analyse, print; refusals are raised as :class:`rooflight.errors.Refused`."""
    if args.view:
        put_or_print(_tensorboard(args), args.output)
        return 0
    cost, held = rate(args), units(args)  # what is mistyped is answered before the traces are read
    document = analysed(args)
    document.units_per_step = held or document.units_per_step
    write(document if cost is None else priced(document, cost), args.format, args.output)
    return 0


def _tensorboard(args: argparse.Namespace) -> bytes:
    from rooflight.cli import tensorboard

    if args.format not in tensorboard.FORMATS:
        raise Refused("this view is a table or JSON", hint="give --format table or json")
    return tensorboard.render(trace_files(args.files), args.format, salvage=args.salvage)


def analysed(args: argparse.Namespace) -> Document:
    """The analysis of the files that the arguments name, or the one that a file holds."""
    files, calibration = trace_files(args.files), read_calibration(args.calibration)
    if len(files) == 1 and (found := saved(files[0])) is not None:
        _no_more_than(found, args)
        return found
    # Imported here so that `rooflight analyze --help` and a mistyped path answer at once.
    from rooflight import analysis

    options = analysis.Options(calibrations=() if calibration is None else (calibration,))
    return analysis.analyze_files(
        files,
        gpu=args.gpu,
        options=options,
        jobs=args.jobs,
        salvage=args.salvage,
        eager=args.eager,
        counters=args.counters,
    ).document


def _no_more_than(document: Document, args: argparse.Namespace) -> None:
    asked = {"--gpu": args.gpu, "--calibration": args.calibration}
    refuse_late(document, asked | {"--eager": args.eager, "--counters": args.counters})


def refuse_late(document: Document, asked: Mapping[str, object]) -> None:
    """Refuse what would have to be known before the analysis that is already made; ``asked`` are options
    with their values."""
    late = [name for name, value in asked.items() if value]
    if late:
        raise Refused(
            f"{', '.join(late)} cannot change an analysis that is made",
            where=document.source[:200],
            hint="give the traces",
        )


def jobs(text: str) -> int:
    """The number of processes that an option asks for."""
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError("between 1 and 1024")
    return int(text)


def render(document: Document, fmt: str, terminal: Terminal | None = None) -> bytes:
    """The document in one of :data:`FORMATS`; ``terminal`` only shapes the table."""
    if fmt == "json":
        return encode(document) + b"\n"
    if fmt == "html":
        from rooflight.report.html import report

        return report(document).encode("utf-8")
    text = markdown(document) if fmt == "md" else table(document, terminal)
    # A name may hold half a surrogate pair, which UTF-8 has no bytes for.
    return text.encode("utf-8", "backslashreplace")


def write(document: Document, fmt: str, output: Path | None) -> None:
    """To the file, or to standard output in the characters and colours that it can show."""
    put_or_print(render(document, fmt, of_stream(sys.stdout) if output is None else None), output)


def put_or_print(data: bytes, output: Path | None) -> None:
    """Write the file, or to standard output."""
    if output is not None:
        put(data, output)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def put(data: bytes, output: Path) -> None:
    """Write the file; a refusal says why it cannot be."""
    try:
        output.write_bytes(data)
    except OSError as e:
        raise Refused(f"cannot write: {e.strerror}", where=str(output), hint="give -o another path") from e


def trace_files(paths: Sequence[Path]) -> list[Path]:
    """The trace files named by ``paths``; of a folder its *.json, *.json.gz and *.zip, by name."""
    files: list[Path] = []
    for path in paths:
        try:
            files += _in_folder(path) if path.is_dir() else [path]
            found = path.exists()
        except OSError as e:
            raise Refused(f"cannot read: {e.strerror}", where=str(path), hint="check the path") from e
        if not found:
            raise Refused("no such file or folder", where=str(path), hint="check the path")
    return files


def _in_folder(folder: Path) -> list[Path]:
    found = sorted(p for p in folder.iterdir() if p.is_file() and p.name.endswith(ENDINGS))
    if not found:
        raise Refused(
            "the folder holds no *.json, *.json.gz or *.zip", where=str(folder), hint="name the traces"
        )
    return found


def saved(path: Path) -> Document | None:
    """The analysis that a file holds; ``None`` when it is something else."""
    try:
        with path.open("rb") as file:
            if file.read(len(_ANALYSIS)) != _ANALYSIS:
                return None
            data = _ANALYSIS + file.read(_MAX_ANALYSIS_BYTES)
    except OSError as e:
        raise Refused(f"cannot read: {e.strerror}", where=str(path), hint="check the path") from e
    if len(data) > _MAX_ANALYSIS_BYTES:
        raise TooLarge("an analysis is under 1 GiB", where=str(path), hint="give the traces")
    return decode(data)


def read_calibration(path: Path | None) -> Calibration | None:
    """The measured ceilings in ``path``, as `rooflight-agent calibrate` writes them."""
    if path is None:
        return None
    hint = "write one with `rooflight-agent calibrate`"
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_CALIBRATION_BYTES + 1)
    except OSError as e:
        raise Refused(f"cannot read the calibration: {e.strerror}", where=str(path), hint=hint) from e
    if len(data) > _MAX_CALIBRATION_BYTES:
        raise TooLarge("a calibration is under 1 MiB", where=str(path), hint=hint)
    try:
        calibration = msgspec.json.decode(data, type=Calibration)
    except msgspec.DecodeError as e:
        raise Malformed(f"not a calibration: {e}", where=str(path), hint=hint) from e
    rates = [calibration.stream_gbs, calibration.copy_gbs, calibration.launch_us]
    rates += [*calibration.gemm_tflops.values(), *calibration.vector_tflops.values()]
    if not all(r is None or _RATES[0] <= r <= _RATES[1] for r in rates):
        low, high = _RATES
        raise Malformed(
            f"not a calibration: a rate is not within {low:g} and {high:g}", where=str(path), hint=hint
        )
    return calibration
