"""The roofs of each device of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooflight.calibration import Calibration
from rooflight.errors import Refused
from rooflight.hardware import Gpu, ceilings, find, gpus, resolve
from rooflight.protocol import Roofs
from rooflight.trace.timeline import DeviceProperties, Timeline


@dataclass(frozen=True, slots=True)
class DeviceRoofs:
    """Row-aligned with ``timeline.device_keys``; ``names`` as the recording gives them."""

    roofs: tuple[Roofs, ...]
    names: tuple[str | None, ...]
    inferred: bool


def device_roofs(timeline: Timeline, gpu: str | None, calibrations: Sequence[Calibration]) -> DeviceRoofs:
    """Roofs by device; an unknown device has none.  ``gpu`` overrides the recorded name."""
    devices = [timeline.meta.device(key) for key in timeline.device_keys]
    roofs = [_named(gpu, calibrations) if gpu else _recorded(d, calibrations) for d in devices]
    return DeviceRoofs(
        roofs=tuple(roofs),
        names=tuple(r.name or None for r in roofs),
        inferred=any(r.inferred for r in roofs),
    )


def _named(name: str, calibrations: Sequence[Calibration]) -> Roofs:
    gpu = find(name)
    if gpu is None:
        raise Refused(f"unknown GPU {name!r}", hint="`rooflight gpus` lists the catalogue")
    if gpu.device_unit == "card":
        raise Refused(
            f"{name!r} is a whole card; a device of a recording is one die of it",
            hint=f"--gpu {_die_of(gpu)}",
        )
    roofs = ceilings(gpu, _calibration(name, calibrations), inferred=gpu.slice_of is not None)
    roofs.name = name
    roofs.ground = gpu.notes if gpu.slice_of else ""
    return roofs


def _die_of(card: Gpu) -> str:
    return next(g.id for g in gpus() if g.name == card.name and g.device_unit != "card")


def _recorded(device: DeviceProperties | None, calibrations: Sequence[Calibration]) -> Roofs:
    if device is None:
        return Roofs()
    found = resolve(
        device.name, sm_count=device.sm_count, memory_bytes=device.memory_bytes, compute=device.compute
    )
    roofs = ceilings(found.gpu, _calibration(device.name, calibrations))
    roofs.name = device.name or (found.gpu.name if found.gpu else None)
    roofs.inferred = found.inferred
    roofs.ground = found.ground
    return roofs


def _calibration(device: str, calibrations: Sequence[Calibration]) -> Calibration | None:
    """The newest calibration of a device of that name."""
    mine = [c for c in calibrations if c.kind != "cpu" and c.device == device and device]
    return max(mine, key=lambda c: c.measured_at, default=None)
