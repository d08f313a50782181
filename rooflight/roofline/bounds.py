"""Lower bounds of a launch's time from its work and the roofs of its device (DEFINITIONS §10, §15).

A bound is work divided by a ceiling: FLOPs by the compute roof of their element type, device-memory
bytes by the memory bandwidth, link bytes by the link.  Verdicts use the *practical* ceilings; only
``above_datasheet`` asks the datasheet.  Whatever is not known stays ``None``: no roof is ever borrowed.
"""

from __future__ import annotations

import math

from msgspec import Struct

from rooflight.dtypes import BY_NAME
from rooflight.protocol import Ceiling, Roofs
from rooflight.units import NS_PER_S

COMPUTE, MEMORY, LINK = "compute", "memory", "link"
_HALF = frozenset({"fp16", "bf16"})


class Work(Struct, frozen=True, gc=False):
    """The work of one launch: FLOPs, device-memory bytes and link bytes, ``None`` where unknown.

    ``over_pcie``: the link bytes cross PCIe (copies from and to the host), not the link between devices.
    ``link_known``: false where they may leave the host, over a network that no datasheet of a device tells.

    ``dtype`` is the element type of the arithmetic, ``matrix`` whether it multiplies matrices;
    ``math_known`` whether the kernel's name told the math type, so that fp32 is not merely assumed.
    """

    flops: float | None
    bytes: float | None
    link_bytes: float | None
    dtype: str | None
    matrix: bool
    math_known: bool = False
    over_pcie: bool = False
    link_known: bool = True


class Bound(Struct, frozen=True, gc=False):
    """Least times of one launch in ns on practical roofs, and what decides them.

    ``side`` is the roof that the work lies under, by arithmetic intensity against the practical ridge
    and so independent of the time taken; ``link`` when crossing the link takes longer than both.
    ``ai`` and ``ridge`` are FLOP/byte.  ``peak_known`` is false when work is known whose compute or
    memory roof is not.
    """

    compute_ns: float | None = None
    memory_ns: float | None = None
    link_ns: float | None = None
    side: str | None = None
    ai: float | None = None
    ridge: float | None = None
    datasheet_ns: float | None = None
    math_type_assumed: bool = False
    peak_known: bool = True

    @property
    def bound_ns(self) -> float | None:
        """The largest of the known bounds; ``None`` when none is known."""
        return _largest(self.compute_ns, self.memory_ns, self.link_ns)

    def above_datasheet(self, t_ns: float) -> bool:
        """Whether a launch of ``t_ns`` beat what the datasheet allows: the data or the cost is wrong."""
        return self.datasheet_ns is not None and 0 < t_ns < self.datasheet_ns


def bound(work: Work, roofs: Roofs) -> Bound:
    """The least time that ``work`` takes under ``roofs``.

    Example: 2·4096³ FLOPs in fp16 under 100 TFLOP/s are 1 374 390 ns; its 3·4096²·2 bytes under
    800 GB/s are 125 829 ns; so the bound is the former, and AI 1365 lies right of the ridge 125.
    """
    return _bound(work, rates(work, roofs))


class Ceilings:
    """The roofs of a device, for many pieces of work: each kind of work looks its own up once."""

    def __init__(self, roofs: Roofs) -> None:
        self._roofs = roofs
        self._known: dict[tuple[str | None, bool, bool, bool, bool], Rates] = {}

    def bound(self, work: Work) -> Bound:
        """As :func:`bound`."""
        kind = (work.dtype, work.matrix, work.math_known, work.over_pcie, work.link_known)
        met = self._known.get(kind)
        if met is None:
            met = self._known[kind] = rates(work, self._roofs)
        return _bound(work, met)


class Rates(Struct, frozen=True, gc=False):
    """What one kind of work meets on one device, per second: practical ceilings, those of the datasheet."""

    compute: float | None
    memory: float | None
    link: float | None
    compute_sheet: float | None
    memory_sheet: float | None
    link_sheet: float | None
    ridge: float | None
    math_type_assumed: bool


def rates(work: Work, roofs: Roofs) -> Rates:
    """What work of this kind meets, whatever its amounts."""
    roof, link = compute_ceiling(work, roofs), _link(work, roofs)
    compute, memory = _practical(roof), _practical(roofs.memory)
    return Rates(
        compute=compute,
        memory=memory,
        link=_practical(link),
        compute_sheet=_datasheet(roof),
        memory_sheet=_datasheet(roofs.memory),
        link_sheet=_datasheet(link),
        ridge=_ratio(compute, memory),
        math_type_assumed=_math_type_assumed(work, roofs),
    )


def _bound(work: Work, rates: Rates) -> Bound:
    # No FLOPs take no time on any unit, also on one whose roof (or type) is unknown.
    compute_ns = 0.0 if work.flops == 0 else _time_ns(work.flops, rates.compute)
    memory_ns = _time_ns(work.bytes, rates.memory)
    link_ns = _time_ns(work.link_bytes, rates.link)
    ai, ridge = _ratio(work.flops, work.bytes), rates.ridge
    return Bound(
        compute_ns=compute_ns,
        memory_ns=memory_ns,
        link_ns=link_ns,
        side=_side(ai, ridge, compute_ns, memory_ns, link_ns),
        ai=ai,
        ridge=ridge,
        datasheet_ns=_datasheet_ns(work, rates),
        math_type_assumed=rates.math_type_assumed,
        peak_known=not (_missing(work.flops, compute_ns) or _missing(work.bytes, memory_ns)),
    )


def _link(work: Work, roofs: Roofs) -> Ceiling | None:
    if not work.link_known:
        return None
    return roofs.pcie if work.over_pcie else roofs.link


def compute_ceiling(work: Work, roofs: Roofs) -> Ceiling | None:
    """The compute roof of this device for this arithmetic, or ``None``.

    Matrix work has the matrix roof of its exact type (a V100 has none for bf16, and fp16 is no
    stand-in for it); where the part has no matrix unit for the type, the vector roof of that type.
    Vector work in half precision computes in fp32, as PyTorch's opmath does, so without a vector roof
    of its own it falls under fp32's.
    """
    if work.dtype is None:
        return None
    if work.matrix:
        return roofs.compute.get(work.dtype) or roofs.vector.get(work.dtype)
    own = roofs.vector.get(work.dtype)
    return own or (roofs.vector.get("fp32") if work.dtype in _HALF else None)


def lacks_roof(work: Work, limit: Bound) -> bool:
    """Whether a roof is missing that a verdict on this work would need.

    No datasheet gives a peak for counting in integers outside the matrix units, and no verdict waits for
    one: only their bytes need a roof.
    """
    if limit.peak_known or work.matrix:
        return not limit.peak_known
    return not counts_in_integers(work) or _missing(work.bytes, limit.memory_ns)


def counts_in_integers(work: Work) -> bool:
    """Whether its type is known to be one of whole numbers."""
    dtype = BY_NAME.get(work.dtype or "")
    return dtype is not None and dtype.kind in ("int", "bool")


def _math_type_assumed(work: Work, roofs: Roofs) -> bool:
    """Only a part with TF32 units leaves open what an fp32 matrix op really multiplied in."""
    return work.matrix and work.dtype == "fp32" and not work.math_known and "tf32" in roofs.compute


def _side(
    ai: float | None,
    ridge: float | None,
    compute_ns: float | None,
    memory_ns: float | None,
    link_ns: float | None,
) -> str | None:
    if link_ns and link_ns > max(compute_ns or 0.0, memory_ns or 0.0):
        return LINK
    if ai == 0:
        return MEMORY
    if ai is None or ridge is None:
        return None
    return COMPUTE if ai >= ridge else MEMORY


def _datasheet_ns(work: Work, rates: Rates) -> float | None:
    return _largest(
        _time_ns(work.flops, rates.compute_sheet),
        _time_ns(work.bytes, rates.memory_sheet),
        _time_ns(work.link_bytes, rates.link_sheet),
    )


def _time_ns(amount: float | None, rate_per_s: float | None) -> float | None:
    return None if amount is None or rate_per_s is None else amount / rate_per_s * NS_PER_S


def _missing(amount: float | None, time_ns: float | None) -> bool:
    return bool(amount) and time_ns is None


def _practical(ceiling: Ceiling | None) -> float | None:
    return _rate(ceiling.practical) if ceiling else None


def _datasheet(ceiling: Ceiling | None) -> float | None:
    return _rate(ceiling.datasheet) if ceiling else None


def _rate(value: float | None) -> float | None:
    """A ceiling counts only when work can be divided by it."""
    return value if value is not None and math.isfinite(value) and value > 0 else None


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def _largest(*times: float | None) -> float | None:
    known = [t for t in times if t is not None]
    return max(known) if known else None
