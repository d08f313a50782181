"""Samples into windows: lowest, mean, highest and last value of each field, and the energy used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import to_builtins

from agent.sampler.sample import MEASURED, OCCASIONAL, DeviceSample, Process
from agent.sampler.throttle import words

#: Of a window; of more, those with most memory.
MOST_PROCESSES = 32
MOST_FLAGS = 64


@dataclass(slots=True)
class Value:
    """Running lowest, mean, highest, last of the known values; unknown ones are not zeros."""

    n: int = 0
    total: float = 0.0
    low: float = 0.0
    high: float = 0.0
    last: float = 0.0

    def add(self, value: float) -> None:
        self.low = value if self.n == 0 else min(self.low, value)
        self.high = value if self.n == 0 else max(self.high, value)
        self.n, self.total, self.last = self.n + 1, self.total + value, value

    def window(self) -> dict[str, float]:
        return {"min": self.low, "mean": self.total / self.n, "max": self.high, "last": self.last}


@dataclass(slots=True)
class Energy:
    """Joules between the first and the last sample.

    The counter's differences where both ends have one; else the trapezoid of the power, which makes the
    whole an estimate.  A counter that went backwards (the driver was loaded anew) is a gap.
    """

    joules: float = 0.0
    intervals: int = 0
    estimated: bool = False
    gaps: int = 0
    _before: DeviceSample | None = None

    def add(self, sample: DeviceSample) -> None:
        before, self._before = self._before, sample
        if before is None:
            return
        if before.energy_mj is not None and sample.energy_mj is not None:
            self._count((sample.energy_mj - before.energy_mj) / 1000)
        elif before.power_w is not None and sample.power_w is not None:
            self.estimated = True
            self._count((before.power_w + sample.power_w) / 2 * (sample.t - before.t))
        else:
            self.gaps += 1

    def _count(self, joules: float) -> None:
        if joules < 0:
            self.gaps += 1
            return
        self.joules, self.intervals = self.joules + joules, self.intervals + 1


@dataclass(slots=True)
class DeviceWindow:
    """Everything seen of one device between two moments, in constant space."""

    first: DeviceSample
    samples: int = 0
    t_end: float = 0.0
    state: str = "ok"
    values: dict[str, Value] = field(default_factory=dict)
    energy: Energy = field(default_factory=Energy)
    throttle: int | None = None
    processes: dict[tuple[int, float | None], Process] = field(default_factory=dict)
    flags: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, sample: DeviceSample) -> None:
        self.samples += 1
        self.t_end, self.state = sample.t, sample.state
        if sample.throttle is not None:
            self.throttle = (self.throttle or 0) | sample.throttle
        self.energy.add(sample)
        for name in (*MEASURED, *OCCASIONAL):
            value = getattr(sample, name)
            if value is not None:
                self.values.setdefault(name, Value()).add(value)
        for process in sample.processes or ():
            self._add_process(process)
        for flag in sample.flags:
            key = flag.code, flag.detail
            if key in self.flags or len(self.flags) < MOST_FLAGS:
                self.flags[key] = self.flags.get(key, 0) + 1

    def _add_process(self, process: Process) -> None:
        """Each with the most memory that it had."""
        key = process.pid, process.started
        before = self.processes.get(key)
        if before is None or (process.mem or 0) > (before.mem or 0):
            self.processes[key] = process
        if len(self.processes) > 2 * MOST_PROCESSES:
            self.processes = {(p.pid, p.started): p for p in self._largest()}

    def _largest(self) -> list[Process]:
        return sorted(self.processes.values(), key=lambda p: (-(p.mem or 0), p.pid))[:MOST_PROCESSES]

    def window(self) -> dict[str, Any]:
        """The window as it is pushed: identity (uuid, t_start, t_end), then
        ``field: {min, mean, max, last}``, ``None`` for a field that was never known, and without those that
        only some devices have."""
        head = {
            "uuid": self.first.uuid,
            "name": self.first.name,
            "index": self.first.index,
            "parent_uuid": self.first.parent_uuid,
            "t_start": self.first.t,
            "t_end": self.t_end,
            "samples": self.samples,
            "state": self.state,
            "memory_kind": self.first.memory_kind,
            "throttle_reasons": self.throttle,
            "throttled_by": words(self.throttle),
            "energy_j": self.energy.joules if self.energy.intervals else None,
        }
        fields = {name: self.values[name].window() if name in self.values else None for name in MEASURED}
        fields |= {name: self.values[name].window() for name in OCCASIONAL if name in self.values}
        if self.processes:
            head["processes"] = [to_builtins(process) for process in self._largest()]
        return {**head, **fields, "flags": [*self._sample_flags(), *self._energy_flags()]}

    def _sample_flags(self) -> list[dict[str, Any]]:
        return [_flag(code, n, detail) for (code, detail), n in self.flags.items()]

    def _energy_flags(self) -> list[dict[str, Any]]:
        flags: list[dict[str, Any]] = []
        if self.energy.estimated:
            flags.append(_flag("energy_estimated", None, "trapezoid of the power samples"))
        if self.energy.gaps:
            flags.append(_flag("energy_gap", self.energy.gaps, "intervals without an energy"))
        return flags


def _flag(code: str, count: int | None, detail: str) -> dict[str, Any]:
    return {"code": code, "count": count, "detail": detail}


class Windows:
    """The windows of all devices of a host, by UUID (a device without one, by index)."""

    def __init__(self) -> None:
        self._devices: dict[str, DeviceWindow] = {}

    def add(self, samples: list[DeviceSample]) -> None:
        for sample in samples:
            key = sample.uuid or f"index {sample.index}"
            self._devices.setdefault(key, DeviceWindow(sample)).add(sample)

    def take(self) -> list[dict[str, Any]]:
        """The windows so far; the next sample starts new ones."""
        devices, self._devices = self._devices, {}
        return [device.window() for device in devices.values()]
