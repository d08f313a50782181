"""NVML, by NVIDIA's own binding (package nvidia-ml-py).  Nothing else in the agent calls it.

Every call that fails costs its own field and nothing more; a device that is lost keeps its UUID and
turns to ``state="lost"`` while the others go on.  Devices are told apart by UUID: indices shift when
one falls off the bus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from agent.sampler.fields import Fields
from agent.sampler.host import Host
from agent.sampler.losses import Losses
from agent.sampler.sample import DeviceSample, Process
from agent.sampler.turns import Turns
from agent.sampler.values import is_percent, number

NO_DRIVER = "no NVIDIA driver found: no telemetry was recorded"
#: Parts whose memory is the host's, by whole tokens of their name.
INTEGRATED = frozenset({"GB10", "ORIN", "THOR", "XAVIER", "TEGRA"})


class NoDriverError(Exception):
    """There is no NVML to ask; the message is what the user is told."""


class _GpuLostError(Exception):
    """The device fell off the bus in the middle of a sample."""


@dataclass
class Nvml:
    """An open NVML session; use :func:`open_nvml`.

    ``pcie_calls`` is how many of NVML's questions for the PCIe throughput, each of which waits 20 ms, one
    look may put; devices and directions take turns.  They are put where the driver has no counters of it.
    """

    library: ModuleType
    host: Host = field(default_factory=Host)
    losses: Losses = field(default_factory=Losses)
    pcie_calls: int = 0
    _fields: Fields = field(init=False)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._fields, self._turns = Fields(self.library), Turns(self.pcie_calls)

    def sample(self, t: float) -> list[DeviceSample]:
        """One sample of every device and MIG instance at host time ``t``, lost ones included."""
        if self.losses.due(t):
            self._reopen()
        self._turns.begin()
        count = self._ask("nvmlDeviceGetCount")
        if count is not None:
            self.losses.counted(count)
        samples: list[DeviceSample] = []
        for index in range(count or 0):
            if not self.losses.resting(index, t):
                samples += self._device(index, t)
        return samples + self.losses.absent({s.uuid for s in samples}, t)

    def close(self) -> None:
        """End the session; the driver may be gone by then."""
        self._ask("nvmlShutdown")

    def _reopen(self) -> None:
        """A session sees the devices that were there when it began: one that returned, or a driver that
        was loaded anew, takes another."""
        self._ask("nvmlShutdown")
        self._ask("nvmlInit")

    def driver_version(self) -> str | None:
        """The driver's version, ``None`` when it does not tell."""
        return self._text("nvmlSystemGetDriverVersion")

    def persistence(self) -> list[bool | None]:
        """Whether the driver stays loaded while a device is unused, by index; ``None``: it does not tell."""
        return [self._persists(index) for index in range(self._ask("nvmlDeviceGetCount") or 0)]

    def _persists(self, index: int) -> bool | None:
        try:
            handle = self._ask("nvmlDeviceGetHandleByIndex", index)
            mode = None if handle is None else self._ask("nvmlDeviceGetPersistenceMode", handle)
        except _GpuLostError:
            return None
        return None if mode is None else mode == 1

    def _device(self, index: int, t: float) -> list[DeviceSample]:
        try:
            samples = self._read(index, t)
        except _GpuLostError:
            samples = []
        if samples:
            self.losses.well(samples[0])
            return samples
        return self.losses.nameless(index, t)

    def _read(self, index: int, t: float) -> list[DeviceSample]:
        """The device and its MIG instances; nothing when it does not even tell its UUID."""
        handle = self._ask("nvmlDeviceGetHandleByIndex", index)
        uuid = None if handle is None else self._text("nvmlDeviceGetUUID", handle)
        if uuid is None:
            return []
        sample = DeviceSample(uuid, t, index, self._text("nvmlDeviceGetName", handle))
        mode = self._ask("nvmlDeviceGetMigMode", handle)
        mig = bool(mode) and mode[0] == 1
        self._fill(handle, sample, mig=mig)
        return [sample, *(self._instances(handle, sample) if mig else [])]

    def _instances(self, handle: Any, parent: DeviceSample) -> list[DeviceSample]:
        """The MIG instances: devices of their own, whose memory is part of the parent's."""
        instances = []
        for i in range(self._ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            instance = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, i)
            if instance is None:
                continue
            sample = DeviceSample(
                self._text("nvmlDeviceGetUUID", instance),
                parent.t,
                parent.index,
                self._text("nvmlDeviceGetName", instance),
                parent_uuid=parent.uuid,
            )
            number_of = number(self._ask("nvmlDeviceGetGpuInstanceId", instance), narrow=True)
            sample.gpu_instance_id = None if number_of is None else int(number_of)
            self._memory(instance, sample)
            sample.flag("mig_utilisation_unavailable", "NVML gives no utilisation of a MIG instance")
            instances.append(sample)
        return instances

    def _fill(self, handle: Any, sample: DeviceSample, *, mig: bool) -> None:
        nvml = self.library
        if mig:
            sample.flag("mig_utilisation_unavailable", "NVML gives no utilisation while MIG is on")
        else:
            self._utilisation(handle, sample)
        power = self._number(sample, "power", "nvmlDeviceGetPowerUsage", handle)
        sample.power_w = None if power is None else power / 1000
        sensor = nvml.NVML_TEMPERATURE_GPU
        sample.temp_c = self._number(sample, "temperature", "nvmlDeviceGetTemperature", handle, sensor)
        fan = self._field(sample, "fan", "nvmlDeviceGetFanSpeed", handle)
        sample.fan_pct = None if fan is None else self._percent(sample, "fan", fan)
        sample.sm_clock_mhz = self._clock(sample, "SM clock", handle, nvml.NVML_CLOCK_SM)
        sample.mem_clock_mhz = self._clock(sample, "memory clock", handle, nvml.NVML_CLOCK_MEM)
        energy = self._field(sample, "energy", "nvmlDeviceGetTotalEnergyConsumption", handle)
        sample.energy_mj = _count(energy)
        sample.throttle = self._throttle(handle)
        self._numbered(handle, sample)
        self._memory(handle, sample)
        self._processes(handle, sample)

    def _numbered(self, handle: Any, sample: DeviceSample) -> None:
        answers = self._ask("nvmlDeviceGetFieldValues", handle, self._fields.questions())
        if answers is not None:
            if self._fields.lost(answers):
                raise _GpuLostError
            self._fields.fill(sample, answers)
        directions = {"pcie_tx_bytes_per_s": self.library.NVML_PCIE_UTIL_TX_BYTES,
                      "pcie_rx_bytes_per_s": self.library.NVML_PCIE_UTIL_RX_BYTES}  # fmt: skip
        for name, direction in directions.items():
            if not self._fields.counts(sample.uuid, name):
                setattr(sample, name, self._pcie(handle, sample, direction))

    def _pcie(self, handle: Any, sample: DeviceSample, direction: int) -> int | None:
        """The rate of 20 ms.  NVML says KB; 1024 bytes are meant by those of NVLink, and taken here."""
        if not self._turns.take((sample.uuid, direction)):
            return None
        rate = number(self._ask("nvmlDeviceGetPcieThroughput", handle, direction), narrow=True)
        return None if rate is None else int(rate) * 1024

    def _utilisation(self, handle: Any, sample: DeviceSample) -> None:
        rates = self._field(sample, "utilisation", "nvmlDeviceGetUtilizationRates", handle)
        if rates is not None:
            sample.util_pct = self._percent(sample, "utilisation", rates.gpu)
            sample.mem_activity_pct = self._percent(sample, "memory activity", rates.memory)

    def _memory(self, handle: Any, sample: DeviceSample) -> None:
        """Version 2 tells what the driver reserves; version 1 counts it as used."""
        info = self._ask("nvmlDeviceGetMemoryInfo", handle, self.library.nvmlMemory_v2)
        if info is not None:
            sample.mem_reserved = _count(info.reserved)
        else:
            info = self._ask("nvmlDeviceGetMemoryInfo", handle)
            if info is None:
                self._unified(sample)
                return
            sample.flag(
                "mem_used_includes_reserved", f"device {sample.index}: the driver tells them together"
            )
        sample.mem_total, sample.mem_used = _count(info.total), _count(info.used)
        sample.mem_free = _count(info.free)

    def _unified(self, sample: DeviceSample) -> None:
        tokens = (sample.name or "").upper().replace("-", " ").split()
        if not INTEGRATED.intersection(tokens):
            sample.flag("not_supported", f"memory (device {sample.index})")
            return
        sample.memory_kind = "unified"
        sample.mem_total = self.host.memory("MemTotal")
        sample.mem_available = self.host.memory("MemAvailable")
        sample.flag("memory_kind", "unified: total and available are the host's")

    def _processes(self, handle: Any, sample: DeviceSample) -> None:
        rows = self._ask("nvmlDeviceGetComputeRunningProcesses", handle)
        if rows is None:  # drivers before 510 have its second version only
            rows = self._ask("nvmlDeviceGetComputeRunningProcesses_v2", handle)
        if rows is None:
            return
        sample.processes = [self._process(row, sample.t) for row in rows]
        foreign = sum(process.name is None for process in sample.processes)
        if foreign:
            sample.flag("pid_foreign_namespace", "pids of another namespace, kept as numbers", foreign)
        if sample.mem_used is not None:
            sample.mem_unaccounted = sample.mem_used - sum(p.mem or 0 for p in sample.processes)

    def _process(self, row: Any, t: float) -> Process:
        instance = number(row.gpuInstanceId, narrow=True)
        process = Process(int(row.pid), mem=_count(row.usedGpuMemory))
        process.gpu_instance_id = None if instance is None else int(instance)
        process.own(self.host.process(process.pid, t))
        return process

    def _throttle(self, handle: Any) -> int | None:
        reasons = self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:  # drivers before 535 know it by its older name only
            reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return _count(reasons)

    def _clock(self, sample: DeviceSample, what: str, handle: Any, domain: int) -> float | None:
        return self._number(sample, what, "nvmlDeviceGetClockInfo", handle, domain)

    def _percent(self, sample: DeviceSample, what: str, value: float) -> float | None:
        known = number(value, narrow=True)
        if known is None or is_percent(known):
            return known
        sample.flag("out_of_range", f"{what} (device {sample.index}): {value}", 1)
        return None

    def _number(self, sample: DeviceSample, what: str, call: str, *args: Any) -> float | None:
        """A value that is 32 bits wide at its source."""
        return number(self._field(sample, what, call, *args), narrow=True)

    def _field(self, sample: DeviceSample, what: str, call: str, *args: Any) -> Any:
        """The call's value; a refusal is flagged on the sample, since the field will show a gap."""
        value = self._ask(call, *args)
        if value is None:
            sample.flag("not_supported", f"{what} (device {sample.index})")
        return value

    def _text(self, call: str, *args: Any) -> str | None:
        value = self._ask(call, *args)
        return str(value) if value else None

    def _ask(self, call: str, *args: Any) -> Any:
        """What NVML answers, ``None`` for any error but the loss of the device.

        A binding without the call and a name that is no UTF-8 are of the same kind: one value that
        cannot be had here.
        """
        function = getattr(self.library, call, None)
        if function is None:
            return None
        try:
            return function(*args)
        except self.library.NVMLError as e:
            if e.value == self.library.NVML_ERROR_GPU_IS_LOST:
                raise _GpuLostError from e
            return None
        except (UnicodeDecodeError, self.library.NVMLLibraryMismatchError):
            return None


def open_nvml(host: Host | None = None, *, pcie_calls: int = 0) -> Nvml:
    """Load NVML and start a session; :class:`NoDriverError` says in a sentence why there is none."""
    try:
        import pynvml
    except ImportError as e:
        raise NoDriverError("the package nvidia-ml-py is not installed: no telemetry was recorded") from e
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as e:
        if e.value in (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED):
            raise NoDriverError(NO_DRIVER) from e
        raise NoDriverError(f"the NVIDIA driver refused ({e}): no telemetry was recorded") from e
    return Nvml(pynvml, host or Host(), pcie_calls=pcie_calls)


def _count(value: Any) -> int | None:
    """A counter of 64 bits: it is no blank when its lower half is all ones."""
    known = number(value)
    return None if known is None else int(known)
