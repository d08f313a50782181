"""Sampling beside a workload, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from agent.counters import Windows
from agent.sampler.devices import open_devices
from agent.sampler.nvml import NoDriverError
from agent.sampler.sample import DeviceSample
from agent.sampler.source import Source
from agent.sampler.throttle import IDLE
from rooflight.results.energy import Look

_IDLE = next(iter(IDLE))
#: More than an hour at four a second.
MOST_LOOKS = 20_000


class Sampling:
    """``with Sampling() as sampling: ...; sampling.telemetry()``.

    Without a driver nothing is started and the telemetry is the sentence that says so.
    """

    def __init__(self, *, interval_s: float = 1.0, source: Source | None = None) -> None:
        self._interval_s = interval_s
        self._source = source
        self._statement: str | None = None
        self._windows = Windows()
        self._looks: dict[str, deque[Look]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sampling:
        if self._source is None:
            try:
                self._source = open_devices()
            except NoDriverError as e:
                self._statement = str(e)
                return self
        self._thread = threading.Thread(target=self._loop, args=(self._source,), name="sampling", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            # A driver that hangs must not hang the run: the thread is a daemon and is left behind.
            self._thread.join(timeout=5 + self._interval_s)

    def telemetry(self, device_uuid: str | None = None) -> dict[str, Any]:
        """For ``Document.telemetry``: windows by UUID, or a statement why there are none.

        ``device_uuid`` is the device that the workload ran on; the join is by UUID alone.
        """
        windows = self._windows.take()
        joined = any(window["uuid"] == device_uuid for window in windows) if device_uuid else False
        flags = []
        if windows and not joined:
            flags.append(
                {"code": "device_unmatched", "count": None, "detail": "no sampled device has the UUID"}
            )
        return {
            "agent_time": time.time(),
            "interval_s": self._interval_s,
            "device_uuid": device_uuid if joined else None,
            "statement": self._statement,
            "windows": windows,
            "flags": flags,
        }

    def looks(self, device_uuid: str | None) -> list[Look]:
        """What was seen of one device, in order of time; the last :data:`MOST_LOOKS`."""
        return list(self._looks.get(device_uuid or "", ()))

    def _loop(self, source: Source) -> None:
        # One look at the start and one at the end: a run shorter than the interval has a window too.
        while True:
            self._look(source)
            if self._stop.wait(self._interval_s):
                break
        self._look(source)
        source.close()

    def _look(self, source: Source) -> None:
        samples = source.sample(time.time())
        self._windows.add(samples)
        for sample in samples:
            if sample.uuid is not None:
                kept = self._looks.setdefault(sample.uuid, deque(maxlen=MOST_LOOKS))
                kept.append(_look_of(sample))


def _look_of(sample: DeviceSample) -> Look:
    energy = None if sample.energy_mj is None else sample.energy_mj / 1000
    idle = sample.util_pct == 0 or bool((sample.throttle or 0) & _IDLE)
    return Look(sample.t, energy, sample.power_w, sample.sm_clock_mhz, working=not idle)
