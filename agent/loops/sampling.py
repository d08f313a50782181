"""Samples of the host's devices, as windows into the spool."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent import pushes
from agent.counters import Windows
from agent.sampler.dcgm import Dcgm
from agent.sampler.devices import open_devices
from agent.sampler.nvml import NoDriverError
from agent.sampler.sample import DeviceSample
from agent.sampler.source import Source
from agent.spool import Spool

#: A driver may be loaded, or a device plugged in, after the agent.
LOOK_S = 60.0
#: Each waits 20 ms for NVML: a look stays well within its second.
PCIE_CALLS = 4


@dataclass
class SamplingLoop:
    """``dcgm`` adds what the devices' own library lacks, and stands in for it where there is none.
    ``latest`` are the last samples, for whoever asks now; ``statement`` says why there are none."""

    spool: Spool
    host: str
    interval_s: float
    window_s: float
    open: Callable[[], Source] = lambda: open_devices(pcie_calls=PCIE_CALLS)
    dcgm: Dcgm | None = None
    latest: list[DeviceSample] = field(default_factory=list)
    statement: str | None = None
    taken: int = 0

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            until = math.inf
            try:
                source = self.open()
                self.statement = None
            except NoDriverError as e:
                self.statement = str(e)
                if self.dcgm is None:
                    stop.wait(LOOK_S)
                    continue
                source, until = self.dcgm, time.monotonic() + LOOK_S
            try:
                self._sample(source, stop, until)
            finally:
                source.close()

    def _sample(self, source: Source, stop: threading.Event, until: float) -> None:
        windows = Windows()
        due = time.monotonic()
        window_ends = due + self.window_s
        while True:
            self.latest = self._look(source)
            self.taken += 1
            windows.add(self.latest)
            ends = stop.is_set() or time.monotonic() >= until
            if time.monotonic() >= window_ends or ends:
                self._keep(windows)
                window_ends += self.window_s
            if ends:
                return
            # From due time to due time: what a sample takes does not add up.
            due = max(due + self.interval_s, time.monotonic())
            stop.wait(due - time.monotonic())

    def _look(self, source: Source) -> list[DeviceSample]:
        samples = source.sample(time.time())
        if self.dcgm is not None:
            self.dcgm.fill(samples)
        return samples

    def _keep(self, windows: Windows) -> None:
        rows = windows.take()
        if any(row["uuid"] for row in rows):
            self.spool.put("telemetry", pushes.telemetry(rows, host=self.host))
