"""The roofs of a device as the chart needs them: which are drawn, where they bend, how they are named."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Any

from msgspec.structs import replace

from rooflight.protocol import Ceiling, Kernel, Roofs

#: No device is slower or faster, in FLOP/s or B/s.
_RATES = (1.0, 1e21)


@dataclass(frozen=True, slots=True)
class Flat:
    """A compute roof, FLOP/s.  ``dtypes`` share it; ``used`` tells whether a drawn group runs in one of
    them; the ridges are FLOP/B where it meets the memory roof of the same kind."""

    dtypes: list[str]
    datasheet: float | None
    practical: float | None
    origin: str
    used: bool
    ridge_datasheet: float | None
    ridge_practical: float | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def plausible(roofs: Roofs) -> Roofs:
    """The roofs without those that no device has, whoever wrote them: they are unknown."""
    return replace(
        roofs,
        compute={dtype: _plausible(c) for dtype, c in roofs.compute.items()},
        vector={dtype: _plausible(c) for dtype, c in roofs.vector.items()},
        memory=None if roofs.memory is None else _plausible(roofs.memory),
        link=None if roofs.link is None else _plausible(roofs.link),
    )


def _plausible(c: Ceiling) -> Ceiling:
    low, high = _RATES
    datasheet, practical = (v if v and low <= v <= high else None for v in (c.datasheet, c.practical))
    return replace(c, datasheet=datasheet, practical=practical)


def flats(roofs: Roofs, drawn: list[Kernel]) -> list[Flat]:
    """The compute roofs for the dtypes of the drawn rows: :func:`flats_of`."""
    return flats_of(roofs, {k.dtype for k in drawn if k.dtype})


def flats_of(roofs: Roofs, used: Set[str]) -> list[Flat]:
    """Roofs of the dtypes in use, and of the other floats only the highest; equal ones are one roof.

    Without any dtype known in use every roof is shown as not used: a default would be a guess.
    """
    table = {**roofs.vector, **roofs.compute}
    merged: dict[tuple[float | None, float | None, bool], list[str]] = {}
    for dtype, ceiling in table.items():
        if ceiling.datasheet or ceiling.practical:
            merged.setdefault((ceiling.datasheet, ceiling.practical, dtype in used), []).append(dtype)
    found = [_flat(names, table[names[0]], roofs.memory, key[2]) for key, names in merged.items()]
    idle = sorted((f for f in found if not f.used and _is_float(f)), key=_height)
    kept = [f for f in found if f.used] + idle[-1:]
    return sorted(kept, key=_height)


def _flat(names: list[str], ceiling: Ceiling, memory: Ceiling | None, used: bool) -> Flat:
    memory = memory or Ceiling()
    return Flat(
        sorted(names),
        ceiling.datasheet,
        ceiling.practical,
        ceiling.origin,
        used,
        _ratio(ceiling.datasheet, memory.datasheet),
        _ratio(ceiling.practical, memory.practical),
    )


def _is_float(f: Flat) -> bool:
    """Whether training or serving in floating point could move to it: integer types are another program."""
    return any("fp" in d or d.startswith(("bf", "tf")) for d in f.dtypes)


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def _height(f: Flat) -> float:
    return f.practical or f.datasheet or 0.0


def line(x0: float, x1: float, peak: float | None, slope: float | None) -> tuple[list[float], list[float]]:
    """The roof from ``x0`` to ``x1`` (FLOP/B): along the slope (B/s) to the ridge, then flat to the end."""
    if peak is None and slope is None:
        return [], []
    if slope is None:
        return [x0, x1], [float(peak or 0)] * 2
    if peak is None:
        return [x0, x1], [x0 * slope, x1 * slope]
    ridge = peak / slope
    if ridge <= x0 or ridge >= x1:
        return [x0, x1], [min(peak, x0 * slope), min(peak, x1 * slope)]
    return [x0, ridge, x1], [x0 * slope, peak, peak]
