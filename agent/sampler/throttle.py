"""Why a clock stays below its highest: NVML's bits in words (nvml.h, nvmlClocksEventReasons)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

IDLE = {0x1: "idle"}
#: Where a busy device belongs.
POWER_CAP = {0x4: "power cap"}
SLOWDOWNS = {
    0x8: "hardware slowdown",
    0x20: "thermal slowdown by the driver",
    0x40: "thermal slowdown by the hardware",
    0x80: "power brake",
}
SET_CLOCKS = {0x2: "clocks set by an administrator", 0x10: "clocks bound to those of another GPU"}
OTHERS = {0x100: "clocks of the display", 0x200: "board limit", 0x400: "reliability limit"}
REASONS = IDLE | SET_CLOCKS | POWER_CAP | SLOWDOWNS | OTHERS
_BITS = 64


def reasons(masks: Iterable[int | None], names: Mapping[int, str]) -> list[str]:
    """The reasons among ``names`` that any of the samples' bit masks holds."""
    seen = 0
    for mask in masks:
        seen |= mask or 0
    return [name for bit, name in names.items() if seen & bit]


def words(mask: int | None) -> list[str] | None:
    """All reasons of a mask; a bit that has no name here is told by its number."""
    if mask is None:
        return None
    unnamed = [1 << n for n in range(_BITS) if mask >> n & 1 and 1 << n not in REASONS]
    return [*reasons([mask], REASONS), *map(hex, unnamed)]
