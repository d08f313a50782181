"""A program of several commands: finds the one that is asked for and runs it.

A command is a module with ``add_arguments(parser)`` and ``run(args) -> int``; it is imported only when it is
asked for, so that ``--help`` stays instant.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rooflight import __version__
from rooflight.cli.terminal import safe
from rooflight.errors import RooflightError


@dataclass(frozen=True, slots=True)
class Program:
    """``commands``: what each does in a few words, by the name of its module in ``package``."""

    name: str
    description: str
    package: str
    commands: Mapping[str, str]

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run a command; its own exit status, or 2: refused or misused."""
        args = list(sys.argv[1:] if argv is None else argv)
        if args and args[0] in self.commands:
            return self._run(args[0], args[1:])
        self._overview().parse_args(args or ["--help"])
        return 2

    def _overview(self) -> argparse.ArgumentParser:
        rows = "\n".join(f"  {name:<10} {text}" for name, text in self.commands.items())
        parser = argparse.ArgumentParser(
            prog=self.name,
            description=self.description,
            epilog=f"commands:\n{rows}\n\n`{self.name} COMMAND --help` tells the rest.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--version", action="version", version=f"{self.name} {__version__}")
        parser.add_argument("command", choices=sorted(self.commands), metavar="COMMAND")
        return parser

    def _run(self, command: str, argv: list[str]) -> int:
        module = importlib.import_module(f"{self.package}.{command}")
        prog = f"{self.name} {command}"
        parser = argparse.ArgumentParser(prog=prog, description=self.commands[command])
        module.add_arguments(parser)
        try:
            return int(module.run(parser.parse_args(argv)))
        except RooflightError as e:
            # One line, whatever the names in it hold.
            print(f"{prog}: {safe(str(e))}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print(f"{prog}: interrupted", file=sys.stderr)
            return 128 + signal.SIGINT
        except BrokenPipeError:
            # The reader (head, less) has gone; what it wanted it has.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
