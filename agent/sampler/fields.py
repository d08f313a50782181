"""Figures that NVML has as numbered fields: links, memory temperature, ECC.  One call for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from agent.sampler.sample import DeviceSample
from agent.sampler.values import number

_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024
#: The member of the union by the value's type (nvml.h, nvmlValueType_t).
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_64_BITS = frozenset({"ulVal", "ullVal", "sllVal"})
#: Field of a sample → NVML's field, counts of errors since the driver was loaded and of the device's life.
_COUNTS = {
    "ecc_corrected_volatile": "NVML_FI_DEV_ECC_SBE_VOL_TOTAL",
    "ecc_uncorrected_volatile": "NVML_FI_DEV_ECC_DBE_VOL_TOTAL",
    "ecc_corrected_aggregate": "NVML_FI_DEV_ECC_SBE_AGG_TOTAL",
    "ecc_uncorrected_aggregate": "NVML_FI_DEV_ECC_DBE_AGG_TOTAL",
}
#: Field of a sample → NVML's counter, its scope, bytes per count.
_RATES = {
    "pcie_tx_bytes_per_s": ("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 0, 1),
    "pcie_rx_bytes_per_s": ("NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 0, 1),
    "nvlink_tx_bytes_per_s": ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", _ALL_LINKS, _KIB),
    "nvlink_rx_bytes_per_s": ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", _ALL_LINKS, _KIB),
}
_MEMORY_TEMPERATURE = "NVML_FI_DEV_MEMORY_TEMP"


@dataclass(frozen=True, slots=True)
class Value:
    """``t`` is when it was true, in seconds since the epoch; ``wide`` that it has 64 bits."""

    number: float
    t: float
    wide: bool


@dataclass
class Rates:
    """Counters into rates.  Unknown at the first look, and where a counter went backwards."""

    _before: dict[tuple[str | None, str], tuple[float, float]] = field(default_factory=dict)

    def knows(self, uuid: str | None, name: str) -> bool:
        """Whether the counter was read before."""
        return (uuid, name) in self._before

    def rate(self, uuid: str | None, name: str, t: float, count: float) -> float | None:
        before, self._before[uuid, name] = self._before.get((uuid, name)), (t, count)
        if before is None or t <= before[0] or count < before[1]:
            return None
        return (count - before[1]) / (t - before[0])


@dataclass
class Fields:
    """``wanted`` are the fields that this binding knows, by NVML's name."""

    library: ModuleType
    rates: Rates = field(default_factory=Rates)
    wanted: dict[str, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        scopes = {name: scope for name, scope, _ in _RATES.values()}
        names = (*_COUNTS.values(), *scopes, _MEMORY_TEMPERATURE)
        known = {name: getattr(self.library, name, None) for name in names}
        self.wanted = {name: (id_, scopes.get(name, 0)) for name, id_ in known.items() if id_ is not None}

    def questions(self) -> list[tuple[int, int]]:
        """What to ask nvmlDeviceGetFieldValues for: field and scope."""
        return list(self.wanted.values())

    def lost(self, answers: Iterable[Any]) -> bool:
        """Whether an answer says that the device fell off the bus."""
        return any(a.nvmlReturn == self.library.NVML_ERROR_GPU_IS_LOST for a in answers)

    def counts(self, uuid: str | None, name: str) -> bool:
        """Whether the device's driver counts what a rate is made of."""
        return self.rates.knows(uuid, name)

    def fill(self, sample: DeviceSample, answers: Iterable[Any]) -> None:
        """Each field has its own answer, and costs no other."""
        known = dict(zip(self.wanted, (self._value(a, sample.t) for a in answers), strict=False))
        for name, source in _COUNTS.items():
            value = known.get(source)
            setattr(sample, name, None if value is None else int(value.number))
        for name, (source, _, unit) in _RATES.items():
            setattr(sample, name, self._rate(sample.uuid, name, known.get(source), unit))
        value = known.get(_MEMORY_TEMPERATURE)
        sample.mem_temp_c = None if value is None else number(value.number, narrow=True)

    def _rate(self, uuid: str | None, name: str, value: Value | None, unit: int) -> int | None:
        # 32 bits of bytes go round several times a second: their difference says nothing.
        if value is None or not value.wide:
            return None
        rate = self.rates.rate(uuid, name, value.t, value.number)
        return None if rate is None else round(rate * unit)

    def _value(self, answer: Any, t: float) -> Value | None:
        if answer.nvmlReturn != self.library.NVML_SUCCESS or answer.valueType >= len(_MEMBERS):
            return None
        member = _MEMBERS[answer.valueType]
        known = number(getattr(answer.value, member))
        at = answer.timestamp / 1e6 if answer.timestamp > 0 else t
        return None if known is None else Value(known, at, member in _64_BITS)
