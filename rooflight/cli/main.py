"""``rooflight``: finds the command and runs it.

A command is a module with ``add_arguments(parser)`` and ``run(args) -> int``; it
is imported only when it is the one asked for, so that `rooflight --help` stays instant.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from rooflight import __version__
from rooflight.cli.terminal import safe
from rooflight.errors import RooflightError

COMMANDS = {
    "analyze": "analyse traces: bounds, regimes, where each step's time goes",
    "compare": "two runs: where their difference comes from, and whether it is noise",
    "cost": "FLOPs and bytes of op events read from standard input, one JSON a line",
    "kernels": "family, dtype and unit of kernel names read from standard input, one a line",
    "whatif": "the same work on another GPU, in another dtype, fused, overlapped, without waiting",
    "gpus": "the hardware catalogue, or the entry that a name resolves to",
    "report": "an analysis as one HTML file, to send on or to keep",
    "figures": "roofline, waterfall, regimes or steps of an analysis as an SVG file",
    "prices": "a price list of your own from the files that a cloud provider publishes",
    "upload": "send a trace to a Rooflight server",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 2 refused or misused."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args and args[0] in COMMANDS:
        return _run(args[0], args[1:])
    _overview().parse_args(args or ["--help"])
    return 2


def _overview() -> argparse.ArgumentParser:
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="rooflight",
        description="What bounds your GPUs, and what to do first.",
        epilog=f"commands:\n{rows}\n\n`rooflight COMMAND --help` tells the rest.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rooflight {__version__}")
    parser.add_argument("command", choices=sorted(COMMANDS), metavar="COMMAND")
    return parser


def _run(name: str, argv: list[str]) -> int:
    module = importlib.import_module(f"rooflight.cli.{name}")
    parser = argparse.ArgumentParser(prog=f"rooflight {name}", description=COMMANDS[name])
    module.add_arguments(parser)
    try:
        return int(module.run(parser.parse_args(argv)))
    except RooflightError as e:
        # One line, whatever the names in it hold.
        print(f"rooflight {name}: {safe(str(e))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"rooflight {name}: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader (head, less) has gone; what it wanted it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
