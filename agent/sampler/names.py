"""What a measured field is called elsewhere: by DCGM and its exporter, and by OpenTelemetry.

DCGM's names, units and types are those of dcgm-exporter's etc/dcp-metrics-included.csv; OpenTelemetry's are
the semantic conventions for hardware (docs/hardware, status: development), ``None`` where they have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_MIB = 1 << 20
#: percent: 0 to 100; ratio: 0 to 1; degrees: may be below zero; narrow: 32 bits wide at its source;
#: amount, total: anything from zero up, the latter a counter.
Kind = Literal["percent", "ratio", "degrees", "narrow", "amount", "total"]


@dataclass(frozen=True, slots=True)
class Name:
    """``per_unit``: one of ours is so many of DCGM's."""

    field: str
    dcgm: str
    help: str
    kind: Kind
    otel: str | None = None
    per_unit: float = 1

    @property
    def whole(self) -> bool:
        """Whether ours counts things."""
        return self.kind == "total" or self.field.endswith("_bytes_per_s") or self.per_unit != 1


def _ratio(field: str, what: str) -> Name:
    dcgm = f"DCGM_FI_PROF_{field.upper()}"
    return Name(field, dcgm, f"{what} (ratio, 0 to 1).", "ratio")


NAMES = (
    Name("util_pct", "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "percent", "hw.gpu.utilization"),
    Name("mem_activity_pct", "DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", "percent"),
    Name("sm_clock_mhz", "DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", "narrow"),
    Name("mem_clock_mhz", "DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", "narrow"),
    Name("power_w", "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", "narrow", "hw.power"),
    Name("temp_c", "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", "degrees", "hw.temperature"),
    Name("mem_temp_c", "DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", "degrees", "hw.temperature"),
    Name("fan_pct", "DCGM_FI_DEV_FAN_SPEED", "Fan speed (in %).", "percent", "hw.fan.speed_ratio"),
    Name(
        "energy_mj",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "Total energy consumption since boot (in mJ).",
        "total",
        "hw.energy",
    ),
    Name(
        "mem_used",
        "DCGM_FI_DEV_FB_USED",
        "Framebuffer memory used (in MiB).",
        "amount",
        "hw.gpu.memory.usage",
        1 / _MIB,
    ),
    Name(
        "mem_free",
        "DCGM_FI_DEV_FB_FREE",
        "Framebuffer memory free (in MiB).",
        "amount",
        None,
        1 / _MIB,
    ),
    Name(
        "mem_reserved",
        "DCGM_FI_DEV_FB_RESERVED",
        "Framebuffer memory reserved (in MiB).",
        "amount",
        None,
        1 / _MIB,
    ),
    Name(
        "throttle",
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
        "What limits the clocks (bit mask of NVML).",
        "amount",
    ),
    *(
        Name(
            f"{link.lower()}_{way.lower()}_bytes_per_s",
            f"DCGM_FI_PROF_{link.upper()}_{way.upper()}_BYTES",
            f"{done} over {link} (in bytes per second).",
            "amount",
            "hw.gpu.io",
        )
        for link in ("PCIe", "NVLink")
        for way, done in (("tx", "Sent"), ("rx", "Received"))
    ),
    *(
        Name(
            f"ecc_{kind}_{span}",
            f"DCGM_FI_DEV_ECC_{bits}_{span[:3].upper()}_TOTAL",
            f"{kind.capitalize()} errors of the memory {since}.",
            "total",
            "hw.errors",
        )
        for kind, bits in (("corrected", "SBE"), ("uncorrected", "DBE"))
        for span, since in (("volatile", "since the driver was loaded"), ("aggregate", "of its life"))
    ),
    _ratio("gr_engine_active", "Time in which the graphics or compute engine was active"),
    _ratio("sm_active", "Cycles in which an SM had a warp, mean over the SMs"),
    _ratio("sm_occupancy", "Warps resident on an SM, of the most there can be"),
    _ratio("pipe_tensor_active", "Cycles in which the tensor pipe was active"),
    _ratio("pipe_fp64_active", "Cycles in which the FP64 pipe was active"),
    _ratio("pipe_fp32_active", "Cycles in which the FP32 pipe was active"),
    _ratio("pipe_fp16_active", "Cycles in which the FP16 pipe was active"),
    _ratio("dram_active", "Cycles in which the memory interface sent or received"),
)
RATIOS = tuple(name.field for name in NAMES if name.kind == "ratio")
