"""``rooflight-agent``: finds the command and runs it.

A command is a module of :mod:`agent.commands`, imported only when it is asked for: torch is loaded by
those alone that run something.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from agent.console import note
from rooflight import __version__
from rooflight.errors import RooflightError

COMMANDS = {
    "run": "run a built-in workload under the profiler, analyse it and send the analysis",
    "calibrate": "measure this device's ceilings",
    "daemon": "sample devices, record processes on order, deliver; until it is told to stop",
    "capture": "record training processes that already run",
    "doctor": "say what keeps the agent from its work on this host, and what to do",
    "push": "send an analysis that was kept",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 1 done but not delivered, 2 refused or misused."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args and args[0] in COMMANDS:
        return _run(args[0], args[1:])
    _overview().parse_args(args or ["--help"])
    return 2


def _overview() -> argparse.ArgumentParser:
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="rooflight-agent",
        description="Measures what this host's device does and tells a Rooflight server.",
        epilog=f"commands:\n{rows}\n\n`rooflight-agent COMMAND --help` tells the rest.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rooflight-agent {__version__}")
    parser.add_argument("command", choices=sorted(COMMANDS), metavar="COMMAND")
    return parser


def _run(name: str, argv: list[str]) -> int:
    module = importlib.import_module(f"agent.commands.{name}")
    parser = argparse.ArgumentParser(prog=f"rooflight-agent {name}", description=COMMANDS[name])
    module.add_arguments(parser)
    try:
        return int(module.run(parser.parse_args(argv)))
    except RooflightError as e:
        note(f"{name}: {e}")
        return 2
    except KeyboardInterrupt:
        note(f"{name}: stopped")
        return 130


if __name__ == "__main__":
    sys.exit(main())
