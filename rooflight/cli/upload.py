"""``rooflight upload``: send traces to a server and wait for their page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from rooflight.cli.analyze import trace_files
from rooflight.cli.terminal import fit
from rooflight.cli.units import add_units, units
from rooflight.client import Client, Job, Project, Rejected
from rooflight.errors import Refused

DEFAULT_SERVER = "http://127.0.0.1:8585"
DEFAULT_PROJECT = "default"
_HOW = "`rooflight-server token create` on the server makes one: give it by ROOFLIGHT_TOKEN or --token"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    env = os.environ
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="traces of one run, one per rank, or a folder of them",
    )
    parser.add_argument(
        "--server",
        default=env.get("ROOFLIGHT_SERVER") or DEFAULT_SERVER,
        metavar="URL",
        help=f"default: $ROOFLIGHT_SERVER, else {DEFAULT_SERVER}",
    )
    parser.add_argument(
        "--project",
        default=env.get("ROOFLIGHT_PROJECT") or DEFAULT_PROJECT,
        metavar="NAME",
        help=f"made when it is not there; default: $ROOFLIGHT_PROJECT, else {DEFAULT_PROJECT}",
    )
    parser.add_argument("--run", metavar="NAME", help="name of the new run; default: the server numbers it")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        help="default: $ROOFLIGHT_TOKEN, which other users of this machine cannot see",
    )
    parser.add_argument(
        "--insecure", action="store_true", help="send the token over plain http to another machine"
    )
    add_units(parser)
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the analysis")


def run(args: argparse.Namespace) -> int:
    """Upload, wait, print the page's address; a refused or failed analysis raises."""
    files, held = trace_files(args.files), units(args)
    token = args.token or os.environ.get("ROOFLIGHT_TOKEN") or None
    client = Client(args.server, token, insecure=args.insecure)
    project = _project(client, args.project)
    new = client.create_run(project.id, args.run, units_per_step=held)
    jobs = [(path, send(client, new.id, path)) for path in files]
    if not args.no_wait:
        for path, job in jobs:
            check(path, client.wait(job))
    print(client.page(new.id))
    return 0


def _project(client: Client, name: str) -> Project:
    """The first thing that is asked of a server; whom it does not know is told how to be known."""
    try:
        return client.create_project(name)
    except Rejected as e:
        if e.status != 401:
            raise
        raise Rejected(e.status, e.title, e.where, _HOW) from e


def send(client: Client, run: str, path: Path) -> Job:
    """Upload one trace; a rejection names the file."""
    try:
        return client.upload_trace(run, path, _progress(path))
    except Rejected as e:
        where = f"{path}: {e.where}" if e.where else str(path)
        raise Rejected(e.status, e.title, where, e.hint) from e


def check(path: Path, job: Job) -> None:
    """Raise what the server says about a trace that it could not analyse."""
    if job.state == "done":
        return
    problem = job.problem
    title = (problem.title or problem.detail if problem else "") or f"the analysis {job.state}"
    if problem and problem.detail and job.state == "failed":
        # Of a failure of the service the title says nothing yet; a refusal's title is the reason.
        title = f"{problem.title or 'the analysis failed'}: {problem.detail[:500]}"
    place = f"{path}: {problem.where}" if problem and problem.where else str(path)
    raise Refused(title, where=place, hint=problem.hint if problem else "")


def _progress(path: Path) -> Callable[[int, int], None] | None:
    """A line on standard error that counts up, where somebody can see it."""
    if not sys.stderr.isatty():
        return None
    name = fit(path.name, 40)

    def show(sent: int, total: int) -> None:
        end = "\n" if sent == total else ""
        share = 100 * sent // total if total else 100
        print(f"\r{name}  {share:3d} %  {sent / 1e6:,.1f} of {total / 1e6:,.1f} MB", end=end, file=sys.stderr)

    return show
