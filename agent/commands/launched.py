"""``rooflight-agent run -- python train.py``: somebody's program, recorded for a few of its steps.

Whatever becomes of the recording, the exit status is the program's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from agent.capture.energy import Recorded, add_energy
from agent.capture.folder import ANALYSIS, keep, manifest_of
from agent.capture.launch import launch, recorded
from agent.capture.reducing import Reducing
from agent.commands.options import client, read_config
from agent.config import Config
from agent.console import note
from agent.push import push_document
from agent.sampler.thread import Sampling
from agent.store import Store, make_folder, write
from rooflight.cli.units import add_units, units
from rooflight.client import Client
from rooflight.errors import Refused, RooflightError
from rooflight.inject.rooflight_window import Plan
from rooflight.protocol import decode, encode

#: Steps of a fraction of a second are still looked at a few times.
LOOK_S = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", type=int, default=10, help="steps that pass before (default 10)")
    parser.add_argument("--stack", action="store_true", help="Python frames too; slows the recorded steps")
    parser.add_argument("--memory", action="store_true", help="allocations too")
    add_units(parser)
    parser.add_argument("--no-shapes", action="store_true", help="cheaper to record; costs stay unknown")
    parser.add_argument("command", nargs="*", metavar="-- COMMAND", help="a program of yours, as it is")


def run(args: argparse.Namespace) -> int:
    """The exit status of the program."""
    settings, plan, held = read_config(args), _plan(args), units(args)
    target = client(args, settings)
    store = Store(settings.state)
    folder = _folder(args, store)
    with Sampling(interval_s=LOOK_S, enough=Recorded(folder)) as sampling:
        status = launch(args.command, plan, folder)
    try:
        document = _analyse(folder, store)
        analysis = decode(document.read_bytes())
        analysis.units_per_step = held or analysis.units_per_step
        add_energy(analysis, manifest_of(folder), sampling)
        write(document, encode(analysis))
    except RooflightError as e:
        note(f"nothing is analysed: {e}")
        return status
    note(f"kept in {folder}")
    if target is not None:
        _send(target, document, settings, args.run or _name(args.command))
    return status


def _plan(args: argparse.Namespace) -> Plan:
    window = {"wait": args.wait, "warmup": args.warmup, "active": args.steps or 5}
    try:
        return Plan(**window, shapes=not args.no_shapes, stack=args.stack, memory=args.memory)
    except ValueError as e:
        raise Refused(str(e), hint="see --wait, --warmup and --steps") from e


def _folder(args: argparse.Namespace, store: Store) -> Path:
    if args.out is None:
        return store.new_run(_name(args.command))
    make_folder(args.out)
    return Path(args.out)


def _analyse(folder: Path, store: Store) -> Path:
    manifest, problems = recorded(folder)
    for problem in problems:
        note(problem)
    if not manifest.recordings:
        hint = (
            "The window opens after --wait steps of the first torch optimizer of a process; "
            "a program that takes fewer, or starts Python with -S, -I or -E, is not recorded"
        )
        raise Refused("no process recorded a step", hint=hint)
    keep(folder, manifest)
    return Reducing(sorted((store.root / "calibrations").glob("*.json"))).analyse(folder)


def _send(target: Client, document: Path, settings: Config, name: str) -> None:
    try:
        note(f"page {target.page(push_document(target, document, settings.project, name))}")
    except RooflightError as e:
        note(f"not sent: {e}")
        note(f"send it later: rooflight-agent push {document}")


def _name(command: list[str]) -> str:
    """The first word that names a program of the user's: the script rather than the interpreter."""
    scripts = [word for word in command if word.endswith(".py")]
    word = Path((scripts or command)[0]).name
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in word)
    return kept[:60] or ANALYSIS
