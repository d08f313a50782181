"""What is asked, and what is answered.  Times are µs, shares percent, an unknown is null."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct, field


class Range(Struct, frozen=True, gc=False):
    """``low <= mid <= high``."""

    low: float
    mid: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.mid + other.mid, self.high + other.high)

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.mid * factor, self.high * factor)

    def each(self, other: Range) -> Range:
        """Low by low, mid by mid, high by high."""
        return Range(self.low * other.low, self.mid * other.mid, self.high * other.high)

    def at_least(self, floor: float) -> Range:
        return Range(max(self.low, floor), max(self.mid, floor), max(self.high, floor))

    def rounded(self, digits: int = 3) -> Range:
        return Range(round(self.low, digits), round(self.mid, digits), round(self.high, digits))


def exactly(value: float) -> Range:
    """A range without width."""
    return Range(value, value, value)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is asked; everything may be combined.

    ``gpu`` is another device and ``dtype`` another number type (``None``: as recorded).  ``roofs_reached``:
    every known kernel at its practical roof; ``fused``: each chain of elementwise kernels as one;
    ``overlapped``: exposed communication behind compute; ``input_ready``: no waiting for input.
    """

    gpu: str | None = None
    dtype: str | None = None
    roofs_reached: bool = False
    fused: bool = False
    overlapped: bool = False
    input_ready: bool = False


@dataclass(frozen=True, slots=True)
class Money:
    """A price of one GPU for one hour, and where it is from."""

    usd_per_gpu_hour: float
    source: str = ""


class KernelForecast(Struct, gc=False):
    """One row of the kernel table.  ``time_us`` is as recorded, ``predicted_us`` and ``bound_us`` on the
    asked device, all totals over its launches; ``basis`` names the rule, ``known`` says that it does not
    rest on an unknown."""

    name: str
    short_name: str
    op: str | None
    family: str | None
    dtype: str | None
    device: str
    kind: str
    count: int
    regime: str
    time_us: float
    predicted_us: Range
    bound_us: float | None
    basis: str
    known: bool


class StepForecast(Struct, gc=False):
    """One step; ``recorded_us`` is its wall time as recorded."""

    n: int
    recorded_us: float
    predicted_us: Range


class InstanceCost(Struct):
    """A step on an instance that can be rented; USD, ``None`` where no price is known.  The step is ``None``
    where its GPU is not in the catalogue, or the recording has none; ``unknown_share`` and
    ``dtype_fallback`` are as in the answer, of this GPU."""

    provider: str
    name: str
    region: str
    gpu_id: str
    usd_per_gpu_hour: float | None
    date: str
    source: str
    step_time_us: Range | None
    cost_per_step: Range | None
    unknown_share: float | None = None
    dtype_fallback: dict[str, str] = field(default_factory=dict)


class WhatIf(Struct):
    """The answer for a document, on the GPU with ``gpu_id`` in the catalogue.

    Kernels and recording are those of the first rank, a step is that of the slowest of ``ranks``.
    ``kernel_time_us`` sums the kernels, ``step_time_us`` is the mean over the steps, ``recording_us`` the
    whole recording on the device with most kernel time; the ``recorded_*`` are what they were.
    ``unknown_share`` is the percentage of ``kernel_time_us.mid`` that rests on unknowns.  ``cost_per_step``
    is in USD, for ``devices`` devices.  ``withheld`` is the reason why the recording allows no verdict:
    the answer is then no better.
    """

    source: str
    gpu: str | None
    recorded_gpu: str | None
    dtype: str | None
    dtype_fallback: dict[str, str]
    kernel_time_us: Range
    recorded_kernel_time_us: float
    step_time_us: Range | None
    recorded_step_time_us: float | None
    recording_us: Range | None
    recorded_us: float | None
    unknown_share: float | None
    per_kernel: list[KernelForecast]
    steps: list[StepForecast]
    cost_per_step: Range | None
    usd_per_gpu_hour: float | None
    devices: int
    assumptions: list[str]
    withheld: str | None = None
    instances: list[InstanceCost] | None = None
    gpu_id: str | None = None
    ranks: int = 1
