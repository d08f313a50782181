"""A module with the shapes of amdsmi 6 and 7: its calls, enumerations and errors, on devices of a test.

A device is a mapping from the name of a call, without ``amdsmi_get_``, to its answer; a number that is an
:class:`Refused` is an error of the library, a call that is left out is not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType
from typing import Any

NOT_SUPPORTED = 2


class AmdSmiException(Exception):  # noqa: N818 - as it is called there
    """The base of amdsmi's errors."""


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code: int) -> None:
        super().__init__(err_code)
        self.err_code = err_code

    def __str__(self) -> str:
        return f"Error code:\n\t{self.err_code} | AMDSMI_STATUS"


class AmdSmiMemoryType(IntEnum):
    VRAM = 0


class AmdSmiClkType(IntEnum):
    GFX = 0
    MEM = 4


class AmdSmiTemperatureType(IntEnum):
    EDGE = 0
    HOTSPOT = 1
    VRAM = 3


class AmdSmiTemperatureMetric(IntEnum):
    CURRENT = 0


@dataclass(frozen=True)
class Refused:
    code: int = NOT_SUPPORTED


CALLS = (
    "gpu_activity", "power_info", "temp_metric", "gpu_memory_total", "gpu_memory_usage", "gpu_vram_usage",
    "clock_info", "energy_count", "gpu_total_ecc_count", "gpu_kfd_info", "gpu_enumeration_info",
    "gpu_device_uuid", "gpu_asic_info", "gpu_process_list",
)  # fmt: skip


class AmdSmi(ModuleType):
    """``devices`` are what the session sees; ``sessions`` counts how often it was opened."""

    def __init__(self, *devices: Mapping[str, Any], refuses: int | None = None) -> None:
        super().__init__("amdsmi")
        self.devices, self.sessions, self._refuses = list(devices), 0, refuses
        for kind in (AmdSmiException, AmdSmiLibraryException, AmdSmiMemoryType, AmdSmiClkType,
                     AmdSmiTemperatureType, AmdSmiTemperatureMetric):  # fmt: skip
            setattr(self, kind.__name__, kind)
        for call in CALLS:
            setattr(self, f"amdsmi_get_{call}", self._call(call))

    def amdsmi_init(self) -> None:
        if self._refuses is not None:
            raise AmdSmiLibraryException(self._refuses)
        self.sessions += 1

    def amdsmi_shut_down(self) -> None:
        """Nothing is to be ended."""

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(len(self.devices)))

    def _call(self, name: str) -> Any:
        def answer(handle: int, *args: IntEnum) -> Any:
            found = self.devices[handle].get(".".join([name, *(a.name for a in args if a.name != "CURRENT")]))
            if found is None or isinstance(found, Refused):
                raise AmdSmiLibraryException(NOT_SUPPORTED if found is None else found.code)
            return found

        return answer


def an_mi300x(uuid: str = "GPU-aaaaaaaaaaaaaaaa", **answers: Any) -> dict[str, Any]:
    """A healthy device as amdsmi 7 answers; ``answers`` replace single calls."""
    return {
        "gpu_kfd_info": {"kfd_id": 1, "node_id": 2, "current_partition_id": 0},
        "gpu_enumeration_info": {"drm_render": 128, "hip_id": 0, "hip_uuid": uuid},
        "gpu_device_uuid": "e8ff74a1-0000-1000-80aa-bbbbbbbbbbbb",
        "gpu_asic_info": {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942"},
        "gpu_activity": {"gfx_activity": 87, "umc_activity": 41, "mm_activity": "N/A"},
        "power_info": {"socket_power": 612, "current_socket_power": 612, "average_socket_power": "N/A"},
        "temp_metric.HOTSPOT": 71,
        "temp_metric.VRAM": 60,
        "gpu_memory_total.VRAM": 206_141_652_992,
        "gpu_memory_usage.VRAM": 1_073_741_824,
        "clock_info.GFX": {"clk": 2100, "min_clk": 500, "max_clk": 2100},
        "clock_info.MEM": {"clk": 1300, "min_clk": 900, "max_clk": 1300},
        # 15.3 µJ a step: 2e9 steps are 30,600 J
        "energy_count": {"energy_accumulator": 2_000_000_000, "counter_resolution": 15.3, "timestamp": 1},
        "gpu_total_ecc_count": {"correctable_count": 3, "uncorrectable_count": 0, "deferred_count": 1},
        "gpu_process_list": [],
        **answers,
    }
