"""The device and the number type that are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from rooflight.errors import Refused
from rooflight.hardware import alike, ceilings, find
from rooflight.protocol import Roofs
from rooflight.roofline.bounds import Work, compute_ceiling

#: Bytes of an element.
SIZES = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp6": 0.75,
    "fp4": 0.5,
}
#: Where a part has no roof for a type, the next wider ones of its kind.
_WIDER = {
    "fp4": ("fp6", "fp8", "bf16", "fp16", "fp32"),
    "fp6": ("fp8", "bf16", "fp16", "fp32"),
    "fp8": ("bf16", "fp16", "fp32"),
    "int8": ("fp16", "bf16", "fp32"),
    "bf16": ("fp16", "fp32"),
    "fp16": ("bf16", "fp32"),
    "tf32": ("fp32",),
    "fp32": (),
    "fp64": (),
}
#: Types that a run's number type may be, so that another may stand for it.
_RUN_TYPES = frozenset({"fp32", "tf32", "fp16", "bf16", "fp8"})
_NARROW = 2.0
_SHOWN = 60


def roofs_of(name: str) -> Roofs:
    """The roofs of the device that is asked for.

    Raises :class:`~rooflight.errors.Refused` for a name that is not one device of the catalogue.
    """
    gpu = find(name)
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    if gpu is None:
        may_be = ", ".join(g.id for g in alike(name)[:8])
        hint = f"it may be one of {may_be}" if may_be else "`rooflight gpus` lists the catalogue"
        raise Refused(f"unknown GPU {shown!r}", hint=hint)
    if gpu.device_unit == "card":
        raise Refused(f"{shown!r} is a whole card, of which a process sees one die", hint="name the die")
    return ceilings(gpu)


@dataclass(slots=True)
class Retyped:
    """Work as it is on the asked device; ``fallback`` collects the types that it lacks."""

    dtype: str | None
    roofs: Roofs
    fallback: dict[str, str] = field(default_factory=dict)

    def work(self, recorded: Work) -> Work:
        """The work in the number type asked for, or in the one that the device has instead."""
        work = recorded
        if self.dtype is not None and takes(work, self.dtype):
            share = SIZES[self.dtype] / SIZES[work.dtype or self.dtype]
            size = None if work.bytes is None else work.bytes * share
            work = replace(work, dtype=self.dtype, bytes=size, math_known=True)
        if work.dtype is None or not work.flops or compute_ceiling(work, self.roofs) is not None:
            return work
        return self._fallen_back(work, work.dtype)

    def _fallen_back(self, work: Work, lacking: str) -> Work:
        for wider in _WIDER.get(lacking, ()):
            other = replace(work, dtype=wider)
            if compute_ceiling(other, self.roofs) is not None:
                self.fallback[lacking] = wider
                if work.bytes is not None and SIZES[wider] > SIZES[lacking]:
                    return replace(other, bytes=work.bytes * SIZES[wider] / SIZES[lacking])
                return other
        return work


def takes(work: Work, dtype: str) -> bool:
    """Whether a run in ``dtype`` has this work in it: of types under 16 bits only matrix work."""
    return work.dtype in _RUN_TYPES and (work.matrix or SIZES[dtype] >= _NARROW)
