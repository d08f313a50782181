"""What keeps a launch from filling its device, in words: blocks, occupancy, and the waves that they make."""

from __future__ import annotations

from msgspec import Struct

from rooflight.hardware.occupancy import Occupancy

#: With so many waves a last one that is not full costs a small share of the time.
FEW_WAVES = 4
_KIB = 1_024


class Launch(Struct, frozen=True, gc=False):
    """A launch and its device.  ``blocks`` are those of the grid, ``None`` where it may count anything
    else; ``threads``, ``registers`` (of a thread) and ``shared_bytes`` are those of a block; ``None`` is
    unknown."""

    blocks: int | None = None
    threads: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    sm_count: int | None = None
    room: Occupancy | None = None


def limiter(launch: Launch) -> str | None:
    """What is known of it, as in ``"40 blocks on 132 SMs"``; ``None`` where nothing limits or is known."""
    said = (_blocks(launch), _occupancy(launch), _waves(launch))
    return "; ".join(filter(None, said)) or None


def _blocks(launch: Launch) -> str:
    if not launch.blocks or not launch.sm_count or launch.blocks >= launch.sm_count:
        return ""
    return f"{launch.blocks:,} block{'' if launch.blocks == 1 else 's'} on {launch.sm_count:,} SMs"


def _occupancy(launch: Launch) -> str:
    room = launch.room
    if room is None or room.fraction >= 1:
        return ""
    what = {
        "registers": launch.registers and f"{launch.registers:,} a thread",
        "shared memory": launch.shared_bytes and f"{launch.shared_bytes / _KIB:,.1f} KiB a block",
        "threads": launch.threads and f"{launch.threads:,} a block",
        "blocks": room.blocks and f"{room.blocks:,} an SM",
    }.get(room.limiter)
    return f"occupancy {100 * room.fraction:.3g} %, limited by {room.limiter}{f' ({what})' if what else ''}"


def _waves(launch: Launch) -> str:
    """How often the device is filled; said where a last wave that is not full weighs."""
    if not launch.blocks or not launch.sm_count or launch.room is None or not launch.room.blocks:
        return ""
    at_once = launch.sm_count * launch.room.blocks
    full, left = divmod(launch.blocks, at_once)
    if launch.blocks < launch.sm_count or not 0 < full < FEW_WAVES or not left:
        return ""
    last = f"the last {100 * left / at_once:.0f} % full"
    return f"{launch.blocks / at_once:.2f} waves of {at_once:,} blocks, {last}"
