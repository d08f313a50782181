"""What one look at one device gives."""

from __future__ import annotations

from msgspec import Struct, field

from rooflight.protocol import Flag

#: Fields of a sample that are measured values, and so have windows.
MEASURED = (
    "util_pct",
    "mem_activity_pct",
    "mem_total",
    "mem_used",
    "mem_reserved",
    "mem_free",
    "mem_available",
    "power_w",
    "temp_c",
    "fan_pct",
    "sm_clock_mhz",
    "mem_clock_mhz",
)


class Process(Struct):
    """A process on a device.  ``pid`` as the driver tells it; ``name`` is ``None`` when the pid belongs to
    another namespace; ``mem`` in bytes."""

    pid: int
    name: str | None = None
    mem: int | None = None
    gpu_instance_id: int | None = None


class DeviceSample(Struct):
    """One device at one moment; ``None`` is unknown, never 0.

    ``t`` is the host's clock in seconds since the epoch.  ``util_pct`` is the share of time in which a
    kernel ran, ``mem_activity_pct`` that in which memory was accessed (not how full it is).  Memory in
    bytes; ``mem_used`` leaves out what the driver reserves unless a flag says so.  ``energy_mj`` is the
    driver's counter in millijoules, ``throttle`` its bit mask of clock limits.
    """

    uuid: str | None
    t: float
    index: int | None = None
    name: str | None = None
    state: str = "ok"
    parent_uuid: str | None = None
    util_pct: float | None = None
    mem_activity_pct: float | None = None
    mem_total: int | None = None
    mem_used: int | None = None
    mem_reserved: int | None = None
    mem_free: int | None = None
    mem_available: int | None = None
    memory_kind: str = "device"
    power_w: float | None = None
    temp_c: float | None = None
    fan_pct: float | None = None
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    energy_mj: int | None = None
    throttle: int | None = None
    processes: list[Process] | None = None
    mem_unaccounted: int | None = None
    flags: list[Flag] = field(default_factory=list)

    def flag(self, code: str, detail: str, count: int | None = None) -> None:
        """Add a statement on this sample's data."""
        self.flags.append(Flag(code, count, detail))
