"""Sampling beside a workload, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
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
MOST_USERS = 4_096


class Sampling:
    """``with Sampling() as sampling: ...; sampling.telemetry()``.

    Without a driver the telemetry is the sentence that says so.  The sampling ends before the block does when
    ``enough`` says so, which is asked after each look.
    """

    def __init__(
        self,
        *,
        interval_s: float = 1.0,
        source: Source | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        self._interval_s, self._source, self._enough = interval_s, source, enough
        self._statement: str | None = None
        self._windows = Windows()
        self._looks: dict[str, deque[Look]] = {}
        self._users: dict[int, set[tuple[str, float | None]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampling", daemon=True)

    def __enter__(self) -> Sampling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
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

    def device_of(self, pid: int) -> str | None:
        """The UUID of the one device on which the driver saw this process; ``None`` of several or none, and
        where its pids are not ours."""
        users = self._users.get(pid, set())
        return next(iter(users))[0] if len(users) == 1 else None

    def _run(self) -> None:
        try:
            # A driver that is not loaded takes seconds to open: the workload does not wait for it.
            source = self._source or open_devices()
        except NoDriverError as e:
            self._statement = str(e)
            return
        self._loop(source)
        source.close()

    def _loop(self, source: Source) -> None:
        # One look at the start and one at the end: a run shorter than the interval has a window too.
        while True:
            self._look(source)
            if self._stop.wait(self._interval_s) or self._enough():
                break
        self._look(source)

    def _look(self, source: Source) -> None:
        samples = source.sample(time.time())
        self._windows.add(samples)
        for sample in samples:
            if sample.uuid is not None:
                kept = self._looks.setdefault(sample.uuid, deque(maxlen=MOST_LOOKS))
                kept.append(_look_of(sample))
                self._note_users(sample.uuid, sample)

    def _note_users(self, uuid: str, sample: DeviceSample) -> None:
        """A MIG instance's processes are told with the device, whose energy is not theirs."""
        for process in sample.processes or ():
            if process.name is not None and process.gpu_instance_id is None and len(self._users) < MOST_USERS:
                self._users.setdefault(process.pid, set()).add((uuid, process.started))


def _look_of(sample: DeviceSample) -> Look:
    energy = None if sample.energy_mj is None else sample.energy_mj / 1000
    idle = sample.util_pct == 0 or bool((sample.throttle or 0) & _IDLE)
    return Look(sample.t, energy, sample.power_w, sample.sm_clock_mhz, working=not idle)
