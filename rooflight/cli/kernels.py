"""``rooflight kernels``: what kernel names tell, one JSON a line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

import msgspec

from rooflight.cli.lines import bounded
from rooflight.kernels import classify

_MAX_NAME = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options: names come in on standard input, one a line."""
    parser.epilog = "Reads kernel names from standard input, one a line; writes one JSON object for each."


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - every command has this signature
    """Answer each line in its order."""
    out = sys.stdout
    # A name may hold any byte; it is data, not a reason to stop.
    lines = (raw.decode("utf-8", "backslashreplace") for raw in bounded(sys.stdin.buffer, _MAX_NAME))
    for line in answers(lines):
        out.write(line + "\n")
    return 0


def answers(names: Iterable[str]) -> Iterator[str]:
    """One JSON text per name: name, family, dtype, compute_dtype, tensor_core, collective, short_name."""
    for raw in names:
        yield msgspec.json.encode(msgspec.to_builtins(classify(raw.rstrip("\r\n")))).decode()
