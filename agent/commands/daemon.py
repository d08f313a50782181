"""``rooflight-agent daemon``: samples devices, records processes on order, delivers what there is."""

from __future__ import annotations

import argparse
import signal
import threading

from agent import config
from agent.commands.options import read_config
from agent.console import note
from agent.daemon import Daemon, state_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help="the Rooflight server [ROOFLIGHT_SERVER]")
    parser.add_argument("--project", help="where captures go that name none [ROOFLIGHT_PROJECT]")
    parser.add_argument("--host", help="the name of this host [ROOFLIGHT_HOST]")
    parser.add_argument("--socket-dir", metavar="DIR", help="socket for containers [ROOFLIGHT_SOCKET_DIR]")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve /metrics there [ROOFLIGHT_METRICS]")
    parser.add_argument("--dcgm", metavar="URL", help="ask dcgm-exporter there, too [ROOFLIGHT_DCGM]")
    parser.add_argument("--interval-s", metavar="S", help="between looks at the devices (default 1)")
    parser.add_argument("--window-s", metavar="S", help="of telemetry that is sent at once (default 10)")
    parser.add_argument("--spool-mib", metavar="MIB", help="room for what waits to be sent (default 256)")


def run(args: argparse.Namespace) -> int:
    """0 when it was told to stop (SIGTERM, SIGINT)."""
    settings = read_config(args)
    flags = {name: getattr(args, name, None) for name in config.VARIABLES}
    state_folder(settings.state)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Daemon(settings, lambda: config.load(flags), note).running() as supervisor:
        names = ", ".join(loop.name for loop in supervisor.loops)
        note(f"runs on {settings.daemon.host}: {names}")
        if settings.server is None:
            note("no server is set: telemetry is kept on disk as long as there is room")
        stop.wait()
        note("stops")
    return 0
