"""``rooflight-agent push``: send an analysis that was kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from agent.commands.options import add_server, client, read_config
from agent.console import note, say
from agent.push import push_document
from rooflight.client import ClientError
from rooflight.errors import Refused


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the analysis.json of a run")
    add_server(parser)
    parser.add_argument("--project", help="the project of the run [ROOFLIGHT_PROJECT]")
    parser.add_argument("--run", metavar="NAME", help="the run's name; default: the folder's")


def run(args: argparse.Namespace) -> int:
    """0 delivered (again, if it was before); 1 not."""
    settings = read_config(args)
    target = client(args, settings)
    if target is None:
        raise Refused("no server to send to", hint="give --server URL or set ROOFLIGHT_SERVER")
    if not args.file.is_file():
        raise Refused("no such file", where=str(args.file), hint="give the analysis.json of a run")
    name = args.run or args.file.resolve().parent.name
    try:
        run_id = push_document(target, args.file, settings.project, name)
    except ClientError as e:
        note(f"not sent: {e}")
        return 1
    say(target.page(run_id))
    return 0
