"""Which entry a device is, by its name or, failing that, by what it reports of itself (§10)."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

from rooflight.hardware.catalogue import gpus
from rooflight.hardware.model import Gpu
from rooflight.hardware.names import find, vendor_of

_TOLERANCE = 0.02  # reported memory is 0.3 to 1.5 % under the vendor's
_SAME = 0.01  # figures of one die, printed with other roundings
_GIB = 2**30
_MIB = 2**20
_GFX = re.compile(r"gfx(\d+)([0-9a-f])([0-9a-f])")


@dataclass(frozen=True, slots=True)
class Resolution:
    """``gpu`` is the entry, or what all ``candidates`` agree in (its ``id`` joins theirs with "+");
    ``None`` when nothing is known.  ``inferred``: not by its name (flag ``sku_inferred``)."""

    gpu: Gpu | None
    inferred: bool
    candidates: tuple[Gpu, ...] = ()


def resolve(
    name: str, *, sm_count: int | None = None, memory_bytes: int | None = None, compute: str | None = None
) -> Resolution:
    """The entry of a device.

    ``sm_count`` are SMs or CUs as reported, ``memory_bytes`` the total, ``compute`` the compute
    capability ("9.0", for HIP "9.4") or the gfx name.  A device that reports another number of SMs than
    its name's entry is a part of it (a partition) or another board: its peaks are unknown.
    """
    named = find(name)
    if named is not None:
        whole = sm_count is None or named.sm_count is None or _close(sm_count, named.sm_count, 0.1)
        return Resolution(named if whole else None, False, (named,))
    if not sm_count or not memory_bytes or not compute:
        return Resolution(None, False)
    vendor = vendor_of(name)
    fits = tuple(
        g
        for g in gpus()
        if g.device_unit != "card"
        and g.sm_count == sm_count
        and vendor in (None, g.vendor)
        and _same_compute(g.compute, compute)
        and _same_memory(g, memory_bytes)
    )
    gpu = agreed(fits)
    return Resolution(gpu, gpu is not None, fits)


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


def _same_compute(ours: str, given: str) -> bool:
    given = given.strip().lower().partition(":")[0]  # gfx942:sramecc+:xnack-
    return given in (ours, _dotted(ours))


def _dotted(compute: str) -> str:
    """A gfx name as HIP reports it in major and minor: gfx90a is 9.0, gfx942 is 9.4, gfx1100 11.0."""
    found = _GFX.fullmatch(compute)
    return f"{int(found[1])}.{int(found[2], 16)}" if found else compute


def _same_memory(gpu: Gpu, memory_bytes: int) -> bool:
    sizes = [gpu.mem_gb * _GIB] if gpu.mem_gb else []
    sizes += [gpu.mem_mib * _MIB] if gpu.mem_mib else []
    return any(_close(memory_bytes, size, _TOLERANCE) for size in sizes)
