"""``rooflight cost``: op events in, their FLOPs and bytes out, one JSON a line.

In: {"op", "input_dims", "input_types", "input_strides", "concrete_inputs"} as the profiler records them,
and where there are any "gpu_args" and "comm".  Arguments may be given by name in "concrete".
Out: {"flops", "bytes_read", "bytes_written", "origin", "reason"}, or {"error"} for a line that is no event.

``--explain`` tells the derivation of each instead; an op may then stand on the command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rooflight.cli.lines import bounded
from rooflight.cli.operands import call_of
from rooflight.cost import Cost, OpCall, estimate
from rooflight.cost.registry import find
from rooflight.errors import Refused
from rooflight.protocol import Roofs

_MAX_LINE = 16 * 1024 * 1024
_COLUMNS = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_EPILOG = """Exit status 2 when a line could not be read; the other lines are answered.
Arguments of an op are a JSON list: [64, 128] is a tensor, "int64[32]" one of a type of its own, [[8], [4]]
a list of tensors, null an argument that is not given; numbers, true, false and other text are values."""


class _BadLineError(Exception):
    """What is wrong with a line, in words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is asked for; without options standard input is answered in JSON."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("op", nargs="?", help="with --explain: an op, such as aten::mm, instead of events")
    parser.add_argument("arguments", nargs="?", help="its arguments, such as '[[64,128],[128,32]]'")
    parser.add_argument("--explain", action="store_true", help="tell in words how each cost comes about")
    parser.add_argument(
        "--dtype", help="with an op: the element type of its tensors (bf16, fp32, int64, ...)"
    )
    parser.add_argument("--gpu", help="with --explain: the bound under the roofs of this device")


def run(args: argparse.Namespace) -> int:
    """Answer every line, or the op that was named; 2 when one was no event."""
    _refuse_misuse(args)
    roofs = None if args.gpu is None else _roofs(args.gpu)
    if args.op is not None:
        print(_explained(call_of(args.op, args.arguments or "[]", args.dtype), roofs))
        return 0
    texts = _explanations(_stdin(), roofs) if args.explain else _answers(_stdin())
    status = 0
    for text, is_event in texts:
        status = status if is_event else 2
        sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return status


def _refuse_misuse(args: argparse.Namespace) -> None:
    if not args.explain and (args.op or args.gpu):
        raise Refused(
            "an op on the command line and --gpu need --explain", hint="Without it, events are read"
        )
    if args.dtype and args.op is None:
        raise Refused("--dtype is for an op on the command line", hint="Events tell their own types")


def _stdin() -> Iterator[bytes]:
    return iter_lines(sys.stdin.buffer)


def iter_lines(stream: Any) -> Iterator[bytes]:
    """Lines of a binary stream; one that is too long comes cut, and so is refused as JSON."""
    return bounded(stream, _MAX_LINE)


def _answers(lines: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    for told in answers(lines):
        yield msgspec.json.encode(told).decode(), "error" not in told


def _explanations(lines: Iterable[bytes], roofs: Roofs | None) -> Iterator[tuple[str, bool]]:
    for call in calls(lines):
        if isinstance(call, OpCall):
            yield _explained(call, roofs) + "\n", True
        else:
            yield call + "\n", False


def _explained(call: OpCall, roofs: Roofs | None) -> str:
    from rooflight.cli.explained import lines
    from rooflight.cli.terminal import of_stream
    from rooflight.cost.explain import explain

    return of_stream(sys.stdout).final("\n".join(lines(explain(call), roofs)))


def _roofs(name: str) -> Roofs:
    from rooflight.hardware import alike, ceilings, find

    gpu = find(name)
    if gpu is None:
        may_be = ", ".join(g.id for g in alike(name))
        hint = f"It may be one of: {may_be}" if may_be else "`rooflight gpus` lists those that are known"
        raise Refused(f"no device is known by the name {name!r}, and no roof is assumed for it", hint=hint)
    return ceilings(gpu)


def answers(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The answer to each line that is not blank."""
    for call in calls(lines):
        yield answer(estimate(call)) if isinstance(call, OpCall) else {"error": call}


def calls(lines: Iterable[bytes]) -> Iterator[OpCall | str]:
    """The event of each line that is not blank, or what is wrong with it."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield call_from(line)
        except _BadLineError as bad:
            yield f"line {number}: {bad}"


def answer(cost: Cost) -> dict[str, Any]:
    """The promised fields; unknown is null.  Reads and writes that were counted together are ``bytes``."""
    together = {} if cost.bytes_total is None else {"bytes": cost.bytes_total}
    return together | {
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
