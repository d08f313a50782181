"""``rooflight-agent push``: send an analysis that was kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from agent.commands.options import add_server, read_config, server
from agent.console import note, say
from agent.push import Client, PushError, key_of
from rooflight.errors import Refused
from rooflight.protocol import decode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the analysis.json of a run")
    add_server(parser)
    parser.add_argument("--project", help="the project of the run [ROOFLIGHT_PROJECT]")
    parser.add_argument("--run", metavar="NAME", help="the run's name; default: the folder's")


def run(args: argparse.Namespace) -> int:
    """0 delivered (again, if it was before); 1 not."""
    settings = read_config(args)
    target = server(args, settings)
    if target is None:
        raise Refused("no server to send to", hint="give --server URL or set ROOFLIGHT_SERVER")
    try:
        body = args.file.read_bytes()
    except OSError as e:
        raise Refused(f"cannot be read: {e.strerror}", where=str(args.file)) from e
    decode(body)
    try:
        with Client(target) as client:
            run_id = client.create_run(
                settings.project, args.run or args.file.resolve().parent.name, key_of(body)
            )
            client.push_analysis(run_id, body)
    except PushError as e:
        note(f"not sent: {e}")
        return 1
    say(target.page(run_id))
    return 0
