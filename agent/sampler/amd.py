"""AMD's devices, by AMD's own binding (package amdsmi, which ROCm brings).  Nothing else here calls it.

A value comes in three shapes, by release and by field: a number, ``{"value": 87, "unit": "%"}``, a text with
its unit; and "N/A" in the place of any of them, or of the table around them.  What is read is the tree that
``amd-smi metric --json`` prints, which :func:`_tree` makes of the binding's answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from agent.sampler.host import Host
from agent.sampler.losses import Losses
from agent.sampler.nvml import NoDriverError
from agent.sampler.sample import DeviceSample, Process
from agent.sampler.values import is_percent, number

NODE = Path("/dev/kfd")
_TEXT = re.compile(r"(-?[0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([^\s0-9]\S{0,20})?")
#: amd-smi divides by 1024 x 1024 and calls it MB.
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
#: The driver's tables are 16 bits wide; the binding makes "N/A" of the blank in most places.
_ALL_ONES_16 = 0xFFFF
#: Where it is in the tree: the first that is known.
_POWER = (("power", "socket_power"), ("power", "current_socket_power"), ("power", "average_socket_power"))
_TEMPERATURE = (("temperature", "hotspot"), ("temperature", "edge"))
_ECC = {"ecc_corrected_volatile": "correctable_count", "ecc_uncorrected_volatile": "uncorrectable_count"}


def fill(sample: DeviceSample, tree: dict[str, Any]) -> None:
    """The fields of a sample from AMD's tree of values; what is missing is flagged, once."""
    missing: list[str] = []
    sample.util_pct = _percent(sample, missing, "utilisation", tree, "usage", "gfx_activity")
    sample.mem_activity_pct = _percent(sample, missing, "memory activity", tree, "usage", "umc_activity")
    sample.power_w = _first(missing, "power", tree, _POWER)
    sample.temp_c = _first(missing, "temperature", tree, _TEMPERATURE)
    sample.mem_total = _bytes(missing, "memory", tree, "mem_usage", "total_vram")
    sample.mem_used = _bytes(missing, "used memory", tree, "mem_usage", "used_vram")
    if sample.mem_total is not None and sample.mem_used is not None:
        sample.mem_free = max(sample.mem_total - sample.mem_used, 0)
    sample.mem_temp_c = _narrow(tree, "temperature", "mem")
    sample.sm_clock_mhz = _narrow(tree, "clock", "gfx")
    sample.mem_clock_mhz = _narrow(tree, "clock", "mem")
    sample.energy_mj = _energy(tree)
    for name, source in _ECC.items():
        count = _known(tree, "ecc", source)
        setattr(sample, name, None if count is None else int(count[0]))
    if missing:
        told = f"{', '.join(missing)} (gpu {sample.index})"
        sample.flag("field_unavailable", told, len(missing))


@dataclass
class Amd:
    """An open session of amdsmi; use :func:`open_amd`."""

    library: ModuleType
    host: Host = field(default_factory=Host)
    losses: Losses = field(default_factory=Losses)

    def sample(self, t: float) -> list[DeviceSample]:
        """One sample of every device and partition at host time ``t``, lost ones included."""
        if self.losses.due(t):
            self._ask("amdsmi_shut_down")
            self._ask("amdsmi_init")
        handles = self._ask("amdsmi_get_processor_handles")
        if handles is not None:
            self.losses.counted(len(handles))
        samples: list[DeviceSample] = []
        for index, handle in enumerate(handles or ()):
            if not self.losses.resting(index, t):
                samples += self._device(index, handle, t)
        _parted(samples)
        return samples + self.losses.absent({s.uuid for s in samples}, t)

    def close(self) -> None:
        """End the session."""
        self._ask("amdsmi_shut_down")

    def _device(self, index: int, handle: Any, t: float) -> list[DeviceSample]:
        partition = _known({"n": self._ask("amdsmi_get_gpu_kfd_info", handle)}, "n", "current_partition_id")
        number_of = None if partition is None else int(partition[0])
        uuid = self._uuid(handle, number_of)
        tree = self._tree(handle, whole=not number_of)
        if not any(tree.values()):  # no question was answered
            return self.losses.nameless(index, t)
        name = _text(self._ask("amdsmi_get_gpu_asic_info", handle), "market_name")
        sample = DeviceSample(uuid, t, index, name, gpu_instance_id=number_of or None)
        fill(sample, tree)
        self._processes(handle, sample)
        if uuid is None:
            sample.flag("device_unmatched", f"GPU index {index} has no UUID to join it by")
        else:
            self.losses.well(sample)
        return [sample]

    def _uuid(self, handle: Any, partition: int | None) -> str | None:
        """HIP's; else the device's, which is its first partition's."""
        told = self._ask("amdsmi_get_gpu_enumeration_info", handle)
        own = _text(told, "hip_uuid") if told is not None else None
        device = None if partition else self._ask("amdsmi_get_gpu_device_uuid", handle)
        return own or (str(device) if device and device != "N/A" else None)

    def _tree(self, handle: Any, *, whole: bool) -> dict[str, Any]:
        """The binding's answers in the shape of amd-smi.  Power, temperature, energy and errors are those of
        the whole socket, and no partition's but the first."""
        tree: dict[str, Any] = {
            "usage": self._ask("amdsmi_get_gpu_activity", handle),
            "mem_usage": self._memory(handle),
            "clock": self._clocks(handle),
        }
        if whole:
            tree |= {
                "power": self._ask("amdsmi_get_power_info", handle),
                "temperature": self._temperatures(handle),
                "energy": self._ask("amdsmi_get_energy_count", handle),
                "ecc": self._ask("amdsmi_get_gpu_total_ecc_count", handle),
            }
        return tree

    def _memory(self, handle: Any) -> dict[str, Any] | None:
        """In bytes where the binding tells them, else in MB."""
        vram = self._member("AmdSmiMemoryType", "VRAM")
        told = {
            "total_vram": self._ask("amdsmi_get_gpu_memory_total", handle, vram),
            "used_vram": self._ask("amdsmi_get_gpu_memory_usage", handle, vram),
        }
        if None not in told.values():
            return {key: {"value": value, "unit": "B"} for key, value in told.items()}
        usage = self._ask("amdsmi_get_gpu_vram_usage", handle)
        if not isinstance(usage, dict):
            return None
        return {"total_vram": usage.get("vram_total"), "used_vram": usage.get("vram_used")}

    def _clocks(self, handle: Any) -> dict[str, Any] | None:
        told = {}
        for name in ("GFX", "MEM"):
            clock = self._ask("amdsmi_get_clock_info", handle, self._member("AmdSmiClkType", name))
            if isinstance(clock, dict):
                told[name.lower()] = clock.get("clk", clock.get("cur_clk"))  # its name before ROCm 6
        return told or None

    def _temperatures(self, handle: Any) -> dict[str, Any] | None:
        now = self._member("AmdSmiTemperatureMetric", "CURRENT")
        told = {}
        for name, key in (("HOTSPOT", "hotspot"), ("EDGE", "edge"), ("VRAM", "mem")):
            sensor = self._member("AmdSmiTemperatureType", name)
            told[key] = self._ask("amdsmi_get_temp_metric", handle, sensor, now)
        return told if any(v is not None for v in told.values()) else None

    def _processes(self, handle: Any, sample: DeviceSample) -> None:
        rows = self._ask("amdsmi_get_gpu_process_list", handle)
        # Before ROCm 6 the list holds handles, each with a question of its own.
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return
        sample.processes = [p for row in rows if (p := self._process(row, sample.t)) is not None]
        foreign = sum(process.name is None for process in sample.processes)
        if foreign:
            sample.flag("pid_foreign_namespace", "pids of another namespace, kept as numbers", foreign)

    def _process(self, row: dict[str, Any], t: float) -> Process | None:
        pid = _known(row, "pid")
        if pid is None:
            return None
        process = Process(int(pid[0]))
        memory = _known(row, "memory_usage", "vram_mem") or _known(row, "mem")
        process.mem = None if memory is None else int(memory[0])
        process.own(self.host.process(process.pid, t))
        return process

    def _member(self, enumeration: str, name: str) -> Any:
        return getattr(getattr(self.library, enumeration, None), name, None)

    def _ask(self, call: str, *args: Any) -> Any:
        """What amdsmi answers, ``None`` for an error, a call or a kind that this release does not have."""
        function = getattr(self.library, call, None)
        if function is None or None in args:
            return None
        try:
            return function(*args)
        except (self.library.AmdSmiException, ValueError, KeyError, AttributeError):
            return None  # the binding decodes text and looks up names within its calls


def open_amd(host: Host | None = None, node: Path = NODE) -> Amd:
    """Load amdsmi and start a session; :class:`NoDriverError` says in a sentence why there is none."""
    if not node.exists():
        raise NoDriverError("no AMD driver found: no telemetry was recorded")
    try:
        import amdsmi
    except ImportError as e:
        raise NoDriverError("the package amdsmi is not installed: no telemetry was recorded") from e
    except Exception as e:  # without its library the import fails in whatever way comes first
        raise NoDriverError("amdsmi cannot load its library: no telemetry was recorded") from e
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as e:
        told = " ".join(str(e).split())
        raise NoDriverError(f"the AMD driver refused ({told}): no telemetry was recorded") from e
    return Amd(amdsmi, host or Host())


def _parted(samples: Iterable[DeviceSample]) -> None:
    """A partition's parent is the device before it that is no partition, as amdsmi lists them.

    Some releases give all partitions of a device one UUID: it is then the first one's alone.
    """
    parent: str | None = None
    seen: set[str] = set()
    for sample in samples:
        if sample.gpu_instance_id is None:
            parent = sample.uuid
        else:
            sample.parent_uuid = parent
        if sample.uuid in seen:
            sample.uuid = None
            sample.flag("device_unmatched", f"GPU index {sample.index} has the UUID of another")
        elif sample.uuid is not None:
            seen.add(sample.uuid)


def _known(tree: Any, *path: str) -> tuple[float, str] | None:
    """The number at ``path`` and its unit, which may be empty; ``None`` wherever the way ends."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    unit = ""
    if isinstance(tree, dict):
        tree, unit = tree.get("value"), str(tree.get("unit", ""))
    if isinstance(tree, str):
        found = _TEXT.fullmatch(tree.strip())
        if found is None:
            return None
        tree, unit = float(found[1]), found[2] or unit
        tree = int(tree) if tree.is_integer() else tree
    if isinstance(tree, bool) or not isinstance(tree, int | float):
        return None
    known = number(tree)
    return None if known is None else (known, unit)


def _narrow(tree: Any, *path: str) -> float | None:
    known = _known(tree, *path)
    if known is None or known[0] == _ALL_ONES_16:
        return None
    return number(known[0], narrow=True)


def _noted(missing: list[str], what: str, value: float | None) -> float | None:
    if value is None:
        missing.append(what)
    return value


def _first(missing: list[str], what: str, tree: Any, paths: Iterable[tuple[str, ...]]) -> float | None:
    known = (_narrow(tree, *path) for path in paths)
    return _noted(missing, what, next((value for value in known if value is not None), None))


def _percent(sample: DeviceSample, missing: list[str], what: str, tree: Any, *path: str) -> float | None:
    value = _noted(missing, what, _narrow(tree, *path))
    if value is None or is_percent(value):
        return value
    sample.flag("out_of_range", f"{what} (gpu {sample.index}): {value}", 1)
    return None


def _bytes(missing: list[str], what: str, tree: Any, *path: str) -> int | None:
    known = _known(tree, *path)
    factor = None if known is None else _BYTES.get(known[1].upper() or "MB")
    if known is None or factor is None or known[0] < 0:
        missing.append(what)
        return None
    return int(known[0] * factor)


def _energy(tree: Any) -> int | None:
    """The counter's steps in µJ each; before ROCm 6 it was called the power."""
    count = _known(tree, "energy", "energy_accumulator") or _known(tree, "energy", "power")
    step = _known(tree, "energy", "counter_resolution")
    return None if count is None or step is None else int(count[0] * step[0] / 1000)


def _text(table: Any, key: str) -> str | None:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) and value and value != "N/A" else None
