"""What one SM (AMD: one CU) holds at most, by compute capability or gfx name (specs/limits.toml)."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from msgspec import Struct

from rooflight.hardware.catalogue import limits

_KIB = 1_024


class Limits(Struct, frozen=True, gc=False):
    """Of one SM: threads, blocks, 32-bit registers, shared memory in bytes; ``None`` is unknown.
    On AMD (gfx names) a CU with its LDS; its registers are of two kinds."""

    threads: int
    blocks: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    warp_size: int = 32


@lru_cache(maxsize=256)
def limits_of(compute: str) -> Limits | None:
    """The limits of a compute capability ("9.0") or gfx name, ``None`` for one that is not in the table."""
    row = record_of(compute)
    if row is None:
        return None
    return Limits(
        threads=row["threads"],
        blocks=row.get("blocks"),
        registers=row.get("registers"),
        shared_bytes=row["shared_kib"] * _KIB,
        warp_size=row["warp_size"],
    )


def record_of(compute: str) -> dict[str, Any] | None:
    """The record with its sources and its date."""
    return _by_compute().get(compute)


@cache
def _by_compute() -> dict[str, dict[str, Any]]:
    return {row["compute"]: row for row in limits()}
