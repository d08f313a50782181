"""``rooflight cost``: op events in, their FLOPs and bytes out, one JSON a line.

In: {"op", "input_dims", "input_types", "input_strides", "concrete_inputs"} as the profiler records them,
and where there are any "gpu_args" and "comm".  Arguments may be given by name in "concrete".
Out: {"flops", "bytes_read", "bytes_written", "origin", "reason"}, or {"error"} for a line that is no event.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rooflight.cli.lines import bounded
from rooflight.cost import Cost, OpCall, estimate
from rooflight.cost.registry import find

_MAX_LINE = 16 * 1024 * 1024
_COLUMNS = ("input_dims", "input_types", "input_strides", "concrete_inputs")


class _BadLineError(Exception):
    """What is wrong with a line, in words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options: standard input to standard output."""
    parser.epilog = "Exit status 2 when a line could not be read; the other lines are answered."


def run(args: argparse.Namespace) -> int:
    """Answer every line; 2 when one was no event."""
    del args
    status = 0
    for answer in answers(iter_lines(sys.stdin.buffer)):
        status = 2 if "error" in answer else status
        sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()
    return status


def iter_lines(stream: Any) -> Iterator[bytes]:
    """Lines of a binary stream; one that is too long comes cut, and so is refused as JSON."""
    return bounded(stream, _MAX_LINE)


def answers(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The answer to each line that is not blank."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield answer(estimate(call_from(line)))
        except _BadLineError as bad:
            yield {"error": f"line {number}: {bad}"}


def answer(cost: Cost) -> dict[str, Any]:
    """The promised fields; unknown is null."""
    return {
        "flops": cost.flops,
        "bytes_read": cost.bytes_read,
        "bytes_written": cost.bytes_written,
        "origin": cost.origin,
        "reason": cost.reason,
    }


def call_from(line: bytes) -> OpCall:
    """The event of one line."""
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as e:
        raise _BadLineError(f"not JSON ({e})") from None
    if not isinstance(event, dict):
        raise _BadLineError("not a JSON object; expected {op, input_dims, ...}")
    op = event.get("op")
    if not isinstance(op, str):
        raise _BadLineError("no op; expected its name as text in the field op")
    dims, types, strides, concrete = (_column(event, name) for name in _COLUMNS)
    named = event.get("concrete")
    if isinstance(named, dict) and not concrete:
        concrete = _by_position(op, named)
    gpu_args, comm = (_mapping(event, name) for name in ("gpu_args", "comm"))
    return OpCall(op, dims, types, strides, concrete, gpu_args, comm)


def _column(event: dict[str, Any], name: str) -> tuple[Any, ...]:
    value = event.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _BadLineError(f"{name} is not a list; expected one entry per argument")
    return tuple(value)


def _mapping(event: dict[str, Any], name: str) -> dict[str, Any]:
    value = event.get(name)
    if value is not None and not isinstance(value, dict):
        raise _BadLineError(f"{name} is not an object")
    return value or {}


def _by_position(op: str, named: dict[str, Any]) -> tuple[str, ...]:
    model = find(op)
    return tuple(str(named.get(name, "")) for name in model.params) if model else ()
