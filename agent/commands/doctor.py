"""``rooflight-agent doctor``: what keeps the agent from its work on this host, and what to do."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from agent.commands.options import read_config
from agent.config import Config
from agent.console import say
from agent.doctor import disk, driver, service, sockets, software, training
from agent.doctor.rows import Row, guarded
from agent.processes import Processes
from agent.sampler.nvml import NoDriverError, open_nvml
from agent.store import Store
from rooflight.errors import Refused


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help="the Rooflight server [ROOFLIGHT_SERVER]")
    parser.add_argument("--socket-dir", metavar="DIR", help="as the daemon's [ROOFLIGHT_SOCKET_DIR]")
    parser.add_argument("--dcgm", metavar="URL", help="as the daemon's [ROOFLIGHT_DCGM]")
    parser.add_argument("--spool-mib", metavar="MIB", help="as the daemon's [ROOFLIGHT_SPOOL_MIB]")
    parser.add_argument(
        "--listen", action="store_true", help=f"hear for {sockets.LISTEN_S:g} s which processes ask"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


@dataclass(frozen=True, slots=True)
class Examination:
    """All the looks at this host, in the order in which they are told."""

    settings: Config
    listens: bool = False

    def rows(self) -> list[Row]:
        looks: dict[str, Callable[[], Iterable[Row]]] = {
            "python": software.python,
            "torch": lambda: software.torch(software.installed("torch")),
            "nvidia": driver.nvidia,
            "amd": lambda: driver.amd(binding=software.installed("amdsmi")),
            "dcgm": lambda: driver.dcgm(self.settings.daemon.dcgm),
            "captures": self._captures,
            "training": lambda: training.training(Processes(), self.settings.daemon.socket_dir),
            "server": lambda: service.server(self.settings),
            "state": lambda: disk.state(self.settings.state, self.settings.daemon.spool_mib),
            "spool": lambda: disk.spool(self.settings.state / "spool", self.settings.daemon.spool_mib),
            "calibration": lambda: disk.calibrations(Store(self.settings.state), _uuids()),
        }
        return [row for check, look in looks.items() for row in guarded(check, look)]

    def _captures(self) -> Iterator[Row]:
        processes = Processes()
        for folder in dict.fromkeys((None, self.settings.daemon.socket_dir)):
            yield from sockets.socket(folder, processes)
            if self.listens:
                yield from sockets.listen(folder, processes)


def run(args: argparse.Namespace) -> int:
    """0 when nothing is a problem, 1 when something is; a warning is none."""
    try:
        settings = read_config(args)
    except Refused as e:
        rows = [Row("settings", "problem", str(e))]
    else:
        rows = Examination(settings, args.listen).rows()
    counts = Counter(row.state for row in rows)
    if args.json:
        told = {"rows": rows, "problems": counts["problem"], "warnings": counts["warning"]}
        say(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    else:
        say("\n".join(row.line() for row in rows))
    return 1 if counts["problem"] else 0


def _uuids() -> list[str]:
    """The devices that can be calibrated: those of the driver."""
    try:
        nvml = open_nvml()
    except NoDriverError:
        return []
    try:
        return [s.uuid for s in nvml.sample(0.0) if s.uuid and s.parent_uuid is None and s.state == "ok"]
    finally:
        nvml.close()
