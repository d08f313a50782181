"""What one look at one device gives."""

from __future__ import annotations

from msgspec import Struct, field

from agent.sampler.host import Found
from agent.sampler.names import RATIOS
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
#: Measured values that only some devices or hosts have: where unknown, a window leaves them out.
OCCASIONAL = (
    "mem_temp_c",
    "mem_unaccounted",
    "pcie_tx_bytes_per_s",
    "pcie_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
    "nvlink_rx_bytes_per_s",
    "ecc_corrected_volatile",
    "ecc_uncorrected_volatile",
    "ecc_corrected_aggregate",
    "ecc_uncorrected_aggregate",
    *RATIOS,
)


class Process(Struct):
    """A process on a device.  ``pid`` as the driver tells it; ``name``, ``uid``, ``user`` and ``started``
    (seconds since the epoch) are ``None`` when the pid belongs to another namespace; ``mem`` in bytes.

    A pid is used again: ``pid`` and ``started`` together are one process."""

    pid: int
    name: str | None = None
    mem: int | None = None
    gpu_instance_id: int | None = None
    uid: int | None = None
    user: str | None = None
    started: float | None = None

    def own(self, found: Found | None) -> None:
        """Whose it is, as far as this host knows it."""
        if found is not None:
            self.name, self.uid, self.user = found.name, found.uid, found.user
            self.started = found.started


class DeviceSample(Struct):
    """One device at one moment; ``None`` is unknown, never 0.

    ``t`` is the host's clock in seconds since the epoch.  ``util_pct`` is the share of time in which a
    kernel ran, ``mem_activity_pct`` that in which memory was accessed (not how full it is).  Memory in
    bytes; ``mem_used`` leaves out what the driver reserves unless a flag says so.  ``energy_mj`` is the
    driver's counter in millijoules, ``throttle`` its bit mask of clock limits.  Rates of PCIe and NVLink
    (over all its links) are means since the look before; what PCIe carries for the protocol may be part of
    them.  ``*_active`` and ``sm_occupancy`` are DCGM's ratios, 0 to 1.  ECC counts are errors of the memory
    since the driver was loaded (``volatile``) and of the device's life (``aggregate``).
    """

    uuid: str | None
    t: float
    index: int | None = None
    name: str | None = None
    state: str = "ok"
    parent_uuid: str | None = None
    gpu_instance_id: int | None = None
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
    mem_temp_c: float | None = None
    pcie_tx_bytes_per_s: int | None = None
    pcie_rx_bytes_per_s: int | None = None
    nvlink_tx_bytes_per_s: int | None = None
    nvlink_rx_bytes_per_s: int | None = None
    ecc_corrected_volatile: int | None = None
    ecc_uncorrected_volatile: int | None = None
    ecc_corrected_aggregate: int | None = None
    ecc_uncorrected_aggregate: int | None = None
    gr_engine_active: float | None = None
    sm_active: float | None = None
    sm_occupancy: float | None = None
    pipe_tensor_active: float | None = None
    pipe_fp64_active: float | None = None
    pipe_fp32_active: float | None = None
    pipe_fp16_active: float | None = None
    dram_active: float | None = None
    flags: list[Flag] = field(default_factory=list)

    def flag(self, code: str, detail: str, count: int | None = None) -> None:
        """Add a statement on this sample's data."""
        self.flags.append(Flag(code, count, detail))
