"""The daemon: its loops, put together.

Nothing here loads numpy or torch; what analyses runs in a child.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.capture.fabric import Fabric
from agent.capture.ondemand import OnDemand
from agent.capture.reducing import Reducing
from agent.capture.traces import Room
from agent.config import Config
from agent.delivery import Delivery
from agent.health import MetricsLoop, Reading, own, plain, text
from agent.loops.analysing import AnalysingLoop
from agent.loops.orders import TIMEOUT_S, OrdersLoop
from agent.loops.pushing import PushingLoop
from agent.loops.sampling import SamplingLoop
from agent.sampler.dcgm import Dcgm
from agent.sender import ServerSender, client_of
from agent.spool import Spool
from agent.supervisor import Loop, Supervisor
from rooflight.client import Client
from rooflight.errors import Refused

Note = Callable[[str], None]


@dataclass
class Daemon:
    """``settings`` are those at the start; ``reload`` reads them anew, for a token that changes meanwhile."""

    settings: Config
    reload: Callable[[], Config]
    note: Note

    @contextlib.contextmanager
    def running(self) -> Iterator[Supervisor]:
        """All loops run within; what was taken in is on disk when it ends."""
        with contextlib.ExitStack() as stack:
            spool = self._spool()
            stack.callback(spool.close)
            fabrics = [stack.enter_context(fabric) for fabric in self._fabrics()]
            yield stack.enter_context(Supervisor(self._loops(spool, fabrics), self.note))

    def _spool(self) -> Spool:
        limit = int(self.settings.daemon.spool_mib * (1 << 20))
        return Spool(self.settings.state / "spool", note=self.note, limit_bytes=limit)

    def _loops(self, spool: Spool, fabrics: Sequence[Fabric]) -> list[Loop]:
        mine = self.settings.daemon
        dcgm = Dcgm(mine.dcgm, self.note) if mine.dcgm is not None else None
        sampling = SamplingLoop(spool, mine.host, mine.interval_s, mine.window_s, dcgm=dcgm)
        analysing = AnalysingLoop(self._client, spool, self._reducing, mine.host, self.note)
        ondemand = OnDemand(fabrics, Room(self.settings.state / "captures"), analysing.finished)
        loops = [Loop("sampling", sampling)]
        if dcgm is not None:
            loops.append(Loop("dcgm", dcgm, awaited=False))
        if fabrics:
            loops += [Loop("captures", ondemand.serve), Loop("analysing", analysing)]
        if self.settings.server is not None:
            loops.append(Loop("pushing", PushingLoop(Delivery(spool, ServerSender(self.reload), self.note))))
        if self.settings.server is not None and fabrics:
            orders = OrdersLoop(self._patient, ondemand, mine.host, self.note)
            loops.append(Loop("orders", orders, awaited=False))
        if mine.metrics is not None:
            page = _Page(mine.host, spool, sampling, analysing, ondemand, loops)
            loops.append(Loop("metrics", MetricsLoop(mine.metrics, page)))
        return loops

    def _fabrics(self) -> list[Fabric]:
        """The abstract socket, and the folder's where one is set; one that is taken is said and left."""
        found: list[Fabric] = []
        for folder in dict.fromkeys((None, self.settings.daemon.socket_dir)):
            try:
                found.append(Fabric(folder))
            except Refused as e:
                self.note(f"no captures by this socket: {e}")
        return found

    def _client(self) -> Client:
        return client_of(self.reload())

    def _patient(self) -> Client:
        return replace(self._client(), timeout_s=TIMEOUT_S)

    def _reducing(self) -> Reducing:
        return Reducing(sorted((self.settings.state / "calibrations").glob("*.json")))


@dataclass(frozen=True)
class _Page:
    """What /metrics says now."""

    host: str
    spool: Spool
    sampling: SamplingLoop
    analysing: AnalysingLoop
    ondemand: OnDemand
    loops: list[Loop]

    def __call__(self) -> str:
        return text(self.host, [*own(), *self._readings()], self.sampling.latest)

    def _readings(self) -> list[Reading]:
        dropped = {(("kind", kind),): float(n) for kind, n in self.spool.dropped().items()}
        loops = {(("loop", loop.name),): float(loop.failures) for loop in self.loops}
        captures = {
            (("outcome", "done"),): float(self.analysing.done),
            (("outcome", "failed"),): float(self.analysing.failed),
        }
        return [
            plain("backlog_batches", "Batches that wait to be delivered.", len(self.spool)),
            plain("backlog_bytes", "Bytes that wait to be delivered.", self.spool.bytes),
            Reading("dropped_batches", "Given up for want of room, not yet told to a server.", dropped),
            Reading("loop_failures_total", "Failures of a loop, which was started again.", loops, "counter"),
            plain("samples_total", "Looks at the devices.", self.sampling.taken, "counter"),
            *self._dcgm(),
            plain("processes", "Training processes that ask for orders.", len(self.ondemand.clients())),
            Reading("captures_total", "Captures that are over.", captures, "counter"),
        ]

    def _dcgm(self) -> list[Reading]:
        dcgm = self.sampling.dcgm
        return (
            []
            if dcgm is None
            else [
                plain(
                    "dcgm_failures_total",
                    "Fetches of dcgm-exporter's page that failed.",
                    dcgm.failures,
                    "counter",
                )
            ]
        )


def state_folder(path: Path) -> Path:
    """The folder, made for this user alone: analyses name a program's kernels and shapes."""
    path.mkdir(parents=True, exist_ok=True)
    if path.stat().st_uid == os.geteuid():
        path.chmod(0o700)
    return path
