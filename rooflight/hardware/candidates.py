"""Which entry a device is, by its name or, failing that, by what it reports of itself (§10)."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

from rooflight.hardware.catalogue import gpus
from rooflight.hardware.model import Gpu
from rooflight.hardware.names import find, shortened, vendor_of
from rooflight.hardware.slices import by_units, cut, is_virtual, modes, part_of

_TOLERANCE = 0.02  # reported memory is 0.3 to 1.5 % under the vendor's
_SAME = 0.01  # figures of one die, printed with other roundings
_GIB = 2**30
_MIB = 2**20
_GFX = re.compile(r"gfx(\d+)([0-9a-f])([0-9a-f])")


@dataclass(frozen=True, slots=True)
class Resolution:
    """``gpu`` is the entry, a slice of one, or what all ``candidates`` agree in (its ``id`` joins theirs with
    "+"); ``None`` when nothing is known.  ``inferred``: not by its name alone (flag ``sku_inferred``);
    ``ground`` then says by what."""

    gpu: Gpu | None
    inferred: bool
    candidates: tuple[Gpu, ...] = ()
    ground: str = ""


@dataclass(frozen=True, slots=True)
class _Reported:
    """What a device reports of itself, beside its name."""

    sm_count: int | None
    memory_bytes: int | None
    compute: str | None


def resolve(
    name: str, *, sm_count: int | None = None, memory_bytes: int | None = None, compute: str | None = None
) -> Resolution:
    """The entry of a device.

    ``sm_count`` are SMs or CUs as reported, ``memory_bytes`` the total, ``compute`` the compute
    capability ("9.0", for HIP "9.4") or the gfx name.  A device that reports fewer SMs than its name's entry
    is a slice of it, one that reports more is another board: its peaks are unknown.
    """
    name = shortened(name)
    reported = _Reported(sm_count, memory_bytes, compute)
    if is_virtual(name):
        return Resolution(None, False)
    named = find(name)
    if named is not None:
        return _named(name, named, reported)
    if not sm_count or not memory_bytes or not compute:
        return Resolution(None, False)
    vendor = vendor_of(name)
    kin = [
        g
        for g in gpus()
        if g.device_unit != "card" and vendor in (None, g.vendor) and _same_compute(g, compute)
    ]
    fits = _wholes(kin, reported) or _partitions(kin, reported)
    gpu = agreed(fits)
    return Resolution(gpu, gpu is not None, fits, _ground(gpu, reported))


def _named(name: str, named: Gpu, reported: _Reported) -> Resolution:
    sm_count = reported.sm_count
    if named.slice_of:
        part = part_of(name)
        whole = find(part.whole) if part else None
        if part is None or whole is None:
            return Resolution(None, False, (named,))
        return _slice(cut(whole, part, sm_count, reported.memory_bytes), named)
    if sm_count is None or named.sm_count is None or sm_count == named.sm_count:
        return Resolution(named, False, (named,))
    if named.vendor == "Intel":  # whose devices count other units than the catalogue, as drivers please
        return Resolution(named if _close(sm_count, named.sm_count, 0.1) else None, False, (named,))
    return _slice(by_units(named, sm_count, reported.memory_bytes), named)


def _slice(part: Gpu | None, named: Gpu) -> Resolution:
    return Resolution(part, part is not None, (named,), part.notes if part else "")


def _wholes(kin: list[Gpu], reported: _Reported) -> tuple[Gpu, ...]:
    return tuple(
        g for g in kin if g.sm_count == reported.sm_count and _same_memory(g, reported.memory_bytes or 0)
    )


def _partitions(kin: list[Gpu], reported: _Reported) -> tuple[Gpu, ...]:
    """The partitions that have the CUs, and either a share of the memory or all of it."""
    sm_count, memory = reported.sm_count or 0, reported.memory_bytes or 0
    parts = [(g, by_units(g, sm_count, memory)) for g in kin if sm_count in modes(g)]
    return tuple(p for g, p in parts if p and (p.mem_bw_gbs is not None or _same_memory(g, memory)))


def _ground(gpu: Gpu | None, reported: _Reported) -> str:
    if gpu is None or reported.memory_bytes is None:
        return ""
    units = "CUs" if gpu.vendor == "AMD" else "SMs"
    found = (
        f"{reported.sm_count} {units}, {reported.compute}, {reported.memory_bytes / _GIB:.0f} GiB: {gpu.name}"
    )
    return f"{found}; {gpu.notes}" if gpu.slice_of else found


def agreed(candidates: tuple[Gpu, ...]) -> Gpu | None:
    """An entry with every figure in which all candidates agree, ``None`` when no peak and no bandwidth
    is among them.  Known here and unknown there is no agreement."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    first, rest = candidates[0], candidates[1:]
    merged = replace(
        first,
        id="+".join(g.id for g in candidates),
        name=" or ".join(dict.fromkeys(g.name for g in candidates)),
        variant="",
        names=(),
        sources=tuple(dict.fromkeys(s for g in candidates for s in g.sources)),
        confidence="low",
        notes="",
        **{f: _all_agree(first, rest, f) for f in _FIGURES},
    )
    return merged if merged.matrix or merged.vector or merged.mem_bw_gbs else None


# Fields that candidates may differ in: figures, and tables of figures.
_TABLES = ("matrix", "vector", "efficiency")
_FIGURES = tuple(
    f.name
    for f in fields(Gpu)
    if f.name in _TABLES or (f.default is None and f.name not in ("names", "sources"))
)


def _all_agree(first: Gpu, rest: tuple[Gpu, ...], field: str) -> Any:
    value = getattr(first, field)
    others = [getattr(g, field) for g in rest]
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if all(_equal(v, o.get(k)) for o in others)}
    return value if all(_equal(value, o) for o in others) else None


def _equal(a: object, b: object) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return _close(a, b, _SAME)
    return a == b


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * abs(b)


def _same_compute(gpu: Gpu, given: str) -> bool:
    given = given.strip().lower().partition(":")[0]  # gfx942:sramecc+:xnack-
    return given in (gpu.compute, _dotted(gpu.compute))


def _dotted(compute: str) -> str:
    """A gfx name as HIP reports it in major and minor: gfx90a is 9.0, gfx942 is 9.4, gfx1100 11.0."""
    found = _GFX.fullmatch(compute)
    return f"{int(found[1])}.{int(found[2], 16)}" if found else compute


def _same_memory(gpu: Gpu, memory_bytes: int) -> bool:
    sizes = [gpu.mem_gb * _GIB] if gpu.mem_gb else []
    sizes += [gpu.mem_mib * _MIB] if gpu.mem_mib else []
    return any(_close(memory_bytes, size, _TOLERANCE) for size in sizes)
