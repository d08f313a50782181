"""``rooflight-agent capture``: record training processes that already run, analyse that and send it."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import threading
from pathlib import Path

from agent.capture.fabric import Fabric
from agent.capture.folder import ANALYSIS
from agent.capture.ondemand import OnDemand
from agent.capture.reducing import Reducing
from agent.capture.traces import Room
from agent.commands.options import add_server, client, read_config
from agent.console import note, say
from agent.push import push_document
from agent.store import Store
from rooflight.captures import Order, Outcome, read_order
from rooflight.client import ClientError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pids", nargs="*", type=int, metavar="PID", help="processes, or their launcher")
    parser.add_argument("--job", type=int, help="all processes of this Slurm job")
    window = parser.add_mutually_exclusive_group()
    window.add_argument("--duration-ms", type=int, help="record so long (default 500)")
    window.add_argument("--iterations", type=int, help="record exactly so many optimizer steps")
    parser.add_argument("--roundup", type=int, help="start at a multiple of this iteration (several ranks)")
    parser.add_argument("--no-shapes", action="store_true", help="cheaper to record; costs stay unknown")
    parser.add_argument("--stack", action="store_true", help="Python frames too; slows the recorded steps")
    parser.add_argument("--timeout-s", type=float, default=120.0, help="wait so long for iterations")
    parser.add_argument(
        "--socket-dir",
        type=Path,
        default=os.environ.get("KINETO_IPC_SOCKET_DIR"),
        help="folder of the socket [KINETO_IPC_SOCKET_DIR]; default: the abstract socket",
    )
    add_server(parser)
    parser.add_argument("--project", help="the project of the run [ROOFLIGHT_PROJECT]")
    parser.add_argument("--run", metavar="NAME", help="the run's name; default: the capture's")


def run(args: argparse.Namespace) -> int:
    """0 recorded and delivered; 1 recorded, not delivered; 2 nothing was recorded."""
    settings, order = read_config(args), _order(args)
    target = client(args, settings)
    outcome, folder = capture(order, args.socket_dir, Room(settings.state / "captures"))
    for row in outcome.processes:
        note(row.problem or f"process {row.pid} is recorded ({row.command})")
    if outcome.state == "failed":
        note(f"nothing was recorded: {outcome.problem}")
        return 2
    calibrations = sorted((Store(settings.state).root / "calibrations").glob("*.json"))
    Reducing(calibrations).analyse(folder)
    say(f"kept in {folder}")
    if target is None:
        return 0
    try:
        name = args.run or order.id
        say(target.page(push_document(target, folder / ANALYSIS, settings.project, name)))
    except ClientError as e:
        note(f"not sent: {e}")
        note(f"send it later: rooflight-agent push {folder / ANALYSIS}")
        return 1
    return 0


def capture(order: Order, socket_dir: Path | None, room: Room) -> tuple[Outcome, Path]:
    """Answer the socket until this one order is over; its outcome, and the folder of its files."""
    over = threading.Event()
    told: list[tuple[Outcome, Path]] = []

    def finished(outcome: Outcome, folder: Path) -> None:
        told.append((outcome, folder))
        over.set()

    with contextlib.closing(Fabric(socket_dir)) as fabric:
        ondemand = OnDemand([fabric], room, finished)
        ondemand.order(order)
        ondemand.serve(over)
    return told[0]


def _order(args: argparse.Namespace) -> Order:
    timed = args.iterations is None
    given = {
        "pids": args.pids,
        "job": args.job,
        "duration_ms": (args.duration_ms or 500) if timed else None,
        "iterations": args.iterations,
        "roundup": args.roundup,
        "shapes": not args.no_shapes,
        "stack": args.stack,
        "timeout_s": args.timeout_s,
    }
    return read_order({"id": f"capture-{secrets.token_hex(4)}", **given})
