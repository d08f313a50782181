"""Occupancy: which share of an SM's warps a launch can keep resident (DEFINITIONS §15, low_occupancy).

Limits come from the trace's deviceProperties where they are there, else from the compute capability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rooflight.hardware.limits import Limits, limits_of

_KIB = 1_024


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``fraction`` of the SM's warps (0 to 1) and the resource that sets it: threads, blocks, registers
    or shared memory.  Resources that are not known do not limit, so it is an upper bound.  ``blocks`` is how
    many an SM holds at once."""

    fraction: float
    limiter: str
    blocks: int | None = field(default=None, compare=False)


#: Registers are handed out per warp in units of 256, shared memory in units of 128 bytes at least.
_REGISTER_UNIT = 256
_SHARED_UNIT = 128
#: Since compute capability 8.0 the system takes 1 KiB of shared memory of every block.
_RESERVED_SINCE = 8
_LARGEST_BLOCK = 1_024
_WAVEFRONT = 64


def limits_from_properties(properties: Mapping[str, Any], compute: str | None = None) -> Limits | None:
    """The limits in one entry of a trace's deviceProperties, ``None`` when it lacks the threads; blocks,
    which it never tells, from ``compute``.

    Wavefronts of 64 tell an AMD device.  Its registers are per SIMD and of two kinds, which the trace
    does not tell apart, so only threads and shared memory limit there.
    """
    threads = _positive(properties.get("maxThreadsPerMultiprocessor"))
    if threads is None:
        return None
    warp_size = _positive(properties.get("warpSize")) or 32
    amd = warp_size == _WAVEFRONT
    known = None if amd or compute is None else limits_of(compute)
    shared = properties.get("sharedMemPerMultiprocessor", properties.get("maxSharedMemoryPerMultiProcessor"))
    return Limits(
        threads=threads,
        blocks=known.blocks if known else None,
        registers=None if amd else _positive(properties.get("regsPerMultiprocessor")),
        shared_bytes=_positive(shared),
        warp_size=warp_size,
    )


def occupancy(
    compute: str,
    threads_per_block: int,
    regs: int | None,
    smem: int | None,
    device_limits: Limits | Mapping[str, Any] | None = None,
) -> Occupancy | None:
    """The occupancy of a launch of blocks of ``threads_per_block`` threads with ``regs`` registers a
    thread and ``smem`` bytes of shared memory a block.  ``device_limits`` are the device's own, or its
    entry in deviceProperties; they come before those of ``compute``.

    ``None`` when the limits are unknown or the launch cannot be (a block that no SM could hold).
    """
    limits = limits_on(compute, device_limits)
    if limits is None or not 0 < threads_per_block <= _LARGEST_BLOCK:
        return None
    warps = -(-threads_per_block // limits.warp_size)
    most_warps = limits.threads // limits.warp_size
    fits = {"threads": most_warps // warps}
    if limits.blocks is not None:
        fits["blocks"] = limits.blocks
    if limits.registers is not None and regs and not _amd(compute, limits):
        fits["registers"] = _blocks_by_registers(limits.registers, regs, warps, limits.warp_size)
    shared = _shared_of_block(compute, limits, smem)
    if limits.shared_bytes is not None and shared:
        fits["shared memory"] = limits.shared_bytes // shared
    limiter = min(fits, key=lambda resource: fits[resource])
    if fits[limiter] < 1:
        return None
    return Occupancy(min(1.0, fits[limiter] * warps / most_warps), limiter, fits[limiter])


@dataclass(frozen=True, slots=True)
class Block:
    """What one block asks for: threads, registers of each, bytes of shared memory."""

    threads: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Beside:
    """``resident`` blocks of one kernel fill an SM; ``lacking`` is what they leave too little of for a block
    of another, "" when it fits."""

    resident: int
    lacking: str


def beside(
    compute: str, many: Block, one: Block, device_limits: Limits | Mapping[str, Any] | None = None
) -> Beside | None:
    """Whether a block of ``one`` finds room on an SM that holds as many blocks of ``many`` as it can; limits
    as for :func:`occupancy`.  ``None`` where they, or registers, are unknown, and where no SM could hold a
    block."""
    limits = limits_on(compute, device_limits)
    if limits is None or limits.registers is None or _amd(compute, limits):
        return None
    room = {
        "threads": limits.threads // limits.warp_size,
        "blocks": limits.blocks or limits.threads,
        "registers": limits.registers,
        "shared memory": limits.shared_bytes or 0,
    }
    asked, other = (_asked(compute, limits, block) for block in (many, one))
    resident = min((room[r] // n for r, n in asked.items() if n), default=0)
    if resident < 1 or any(other[r] > room[r] for r in room):
        return None
    lacking = (r for r, n in other.items() if n > room[r] - resident * asked[r])
    return Beside(resident, next(lacking, ""))


def _asked(compute: str, limits: Limits, block: Block) -> dict[str, int]:
    warps = -(-block.threads // limits.warp_size)
    return {
        "threads": warps,
        "blocks": 1,
        "registers": warps * _round_up(block.registers * limits.warp_size, _REGISTER_UNIT),
        "shared memory": _shared_of_block(compute, limits, block.shared_bytes),
    }


def _blocks_by_registers(registers: int, per_thread: int, warps: int, warp_size: int) -> int:
    per_warp = _round_up(per_thread * warp_size, _REGISTER_UNIT)
    return registers // per_warp // warps


def limits_on(compute: str, device: Limits | Mapping[str, Any] | None) -> Limits | None:
    """The limits of a device: its own, those of its entry in deviceProperties, else those of ``compute``."""
    if isinstance(device, Limits):
        return device
    if not device:
        return limits_of(compute)
    # HIP writes its gfx90a as 9.0, which is another vendor's: no fallback for it.
    foreign = device.get("warpSize") == _WAVEFRONT and not compute.startswith("gfx")
    fallback = None if foreign else limits_of(compute)
    return limits_from_properties(device, compute) or fallback


def _shared_of_block(compute: str, limits: Limits, smem: int | None) -> int:
    """Shared memory that a block takes, with the system's own; 0 when it asks for none or is unknown."""
    if not smem or smem < 0:
        return 0
    reserved = 0 if _amd(compute, limits) or _major(compute) < _RESERVED_SINCE else _KIB
    return _round_up(smem + reserved, _SHARED_UNIT)


def _amd(compute: str, limits: Limits) -> bool:
    return limits.warp_size == _WAVEFRONT or compute.startswith("gfx")


def _major(compute: str) -> int:
    """Of a compute capability that is known; 0 of any other."""
    return int(compute.partition(".")[0]) if limits_of(compute) else 0


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
