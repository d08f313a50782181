"""Clocks while we measure: a ceiling at half the clock is half a ceiling."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from agent.device import Device
from agent.sampler.nvml import NoDriverError, open_nvml
from agent.sampler.sample import DeviceSample
from agent.sampler.source import Source
from agent.sampler.throttle import POWER_CAP, SET_CLOCKS, SLOWDOWNS, reasons
from rooflight.calibration import Clock

INTERVAL_S = 0.25
CPUS = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")


def clock(mhz: Iterable[float | None]) -> Clock | None:
    """The known values' lowest, median and highest, ``None`` of none."""
    known = [value for value in mhz if value is not None]
    return Clock(min(known), statistics.median(known), max(known)) if known else None


class Clocks:
    """``with Clocks(device) as clocks``: a GPU's clocks four times a second, by NVML, in a thread of their
    own; a CPU's when :meth:`look` is called, which is where nothing is measured."""

    def __init__(self, device: Device, source: Source | None = None) -> None:
        self._device, self._source = device, source
        self._samples: list[DeviceSample] = []
        self._cpu: list[float | None] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Clocks:
        if self._device.is_gpu and self._device.uuid is not None:
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            # A driver that hangs must not hang the measurement: the thread is a daemon.
            self._thread.join(timeout=5)

    def look(self) -> None:
        """Read the CPU's clock."""
        if not self._device.is_gpu:
            self._cpu.append(cpu_mhz())

    def found(self) -> dict[str, Clock]:
        """The clocks that are known: ``sm`` and ``memory`` of a GPU, ``cpu`` of a CPU."""
        busy = [s for s in self._samples if not (s.throttle or 0) & 1]  # bit 0: idle
        clocks = {
            "sm": clock(s.sm_clock_mhz for s in busy),
            "memory": clock(s.mem_clock_mhz for s in busy),
            "cpu": clock(self._cpu),
        }
        return {name: found for name, found in clocks.items() if found is not None}

    def slowdowns(self) -> list[str]:
        """What kept the clocks down that should not."""
        return reasons((s.throttle for s in self._samples), SLOWDOWNS)

    def limits(self) -> list[str]:
        """What kept the clocks down as it should."""
        return reasons((s.throttle for s in self._samples), POWER_CAP | SET_CLOCKS)

    def _start(self) -> None:
        try:
            source = self._source or open_nvml()
        except NoDriverError:
            return
        self._thread = threading.Thread(target=self._loop, args=(source,), name="clocks", daemon=True)
        self._thread.start()

    def _loop(self, source: Source) -> None:
        while not self._stop.wait(INTERVAL_S):
            self._samples += [s for s in source.sample(time.time()) if s.uuid == self._device.uuid]
        source.close()


def cpu_mhz(cpus: Path = CPUS, cpuinfo: Path = CPUINFO) -> float | None:
    """The highest clock of the CPUs that we may run on, ``None`` where the kernel does not tell.

    The highest, since the others may be asleep when we look.
    """
    ours = os.sched_getaffinity(0)
    driver = [_number(_read(cpus / f"cpu{n}/cpufreq/scaling_cur_freq"), 1e-3) for n in ours]
    told = [mhz for mhz in driver if mhz] or _cpuinfo_mhz(cpuinfo, ours)
    return round(max(told), 1) if told else None


def _cpuinfo_mhz(cpuinfo: Path, ours: set[int]) -> list[float]:
    """``cpu MHz`` of each processor that is ours."""
    found, processor = [], ""
    for line in _read(cpuinfo).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "processor":
            processor = value.strip()
        elif key.strip() == "cpu MHz" and processor in {str(n) for n in ours}:
            found.append(_number(value, 1.0))
    return [mhz for mhz in found if mhz is not None]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(text: str, unit: float) -> float | None:
    try:
        return float(text) * unit
    except ValueError:
        return None
