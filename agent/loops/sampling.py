"""Samples of the host's devices, as windows into the spool."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent import pushes
from agent.counters import Windows
from agent.sampler.nvml import NoDriverError, open_nvml
from agent.sampler.sample import DeviceSample
from agent.sampler.thread import Source
from agent.spool import Spool

#: A driver may be loaded, or a device plugged in, after the agent.
LOOK_S = 60.0
#: Each waits 20 ms for NVML: a look stays well within its second.
PCIE_CALLS = 4


def open_devices() -> Source:
    """The devices of this host; :class:`NoDriverError` says why there are none."""
    return open_nvml(pcie_calls=PCIE_CALLS)


@dataclass
class SamplingLoop:
    """``latest`` are the last samples, for whoever asks now; ``statement`` says why there are none."""

    spool: Spool
    host: str
    interval_s: float
    window_s: float
    open: Callable[[], Source] = open_devices
    latest: list[DeviceSample] = field(default_factory=list)
    statement: str | None = None
    taken: int = 0

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                source = self.open()
            except NoDriverError as e:
                self.statement = str(e)
                stop.wait(LOOK_S)
                continue
            self.statement = None
            try:
                self._sample(source, stop)
            finally:
                source.close()

    def _sample(self, source: Source, stop: threading.Event) -> None:
        windows = Windows()
        due = time.monotonic()
        window_ends = due + self.window_s
        while True:
            self.latest = source.sample(time.time())
            self.taken += 1
            windows.add(self.latest)
            if time.monotonic() >= window_ends or stop.is_set():
                self._keep(windows)
                window_ends += self.window_s
            if stop.is_set():
                return
            # From due time to due time: what a sample takes does not add up.
            due = max(due + self.interval_s, time.monotonic())
            stop.wait(due - time.monotonic())

    def _keep(self, windows: Windows) -> None:
        rows = windows.take()
        if any(row["uuid"] for row in rows):
            self.spool.put("telemetry", pushes.telemetry(rows, host=self.host))
