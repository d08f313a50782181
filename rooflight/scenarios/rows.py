"""The kernel table of a rank in columns: made once, asked for one device after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.protocol import PARTS, Kernel
from rooflight.roofline.bounds import Work
from rooflight.roofline.columns import Works
from rooflight.trace.tables import I64, Mask, Table

MEMORY, LINK, PCIE = range(3)
_PLACE = {part: i for i, part in enumerate(PARTS)}
_FUSED_FAMILY = "elementwise"


@dataclass(frozen=True, slots=True)
class Rows(Table):
    """Times are µs: ``time_us`` of all launches, ``launch_us`` of the typical one, ``own_us`` what is theirs
    alone in the recording, ``steps_own_us`` within its steps.  ``part`` is the place of the regime in
    ``PARTS`` and ``device`` that among the devices asked for, -1 elsewhere; ``crosses`` is what a copy would
    take its way over.  ``blocks`` are NaN where they are not known.  Of a row's bytes ``unread`` is left when
    it does not read what chains hand on, ``unwritten`` when it does not write it either."""

    device: I64
    is_kernel: Mask
    part: I64
    time_us: F64
    launch_us: F64
    own_us: F64
    steps_own_us: F64
    works: Works
    blocks: F64
    crosses: I64
    unread: F64
    unwritten: F64

    @classmethod
    def of(cls, kernels: Sequence[Kernel], devices: Sequence[str]) -> Rows:
        """Row-aligned with ``kernels``."""
        place = {name: i for i, name in enumerate(devices)}
        unread, unwritten = _fused(kernels)
        time_us = _column(k.time_us for k in kernels)
        return cls(
            device=np.array([place.get(k.device, -1) for k in kernels], np.int64),
            is_kernel=np.array([k.kind == "kernel" for k in kernels], bool),
            part=np.array([_PLACE.get(k.regime, -1) for k in kernels], np.int64),
            time_us=time_us,
            launch_us=_column(k.p50_us or k.time_us / max(1, k.count) for k in kernels),
            own_us=_or(_column(k.exclusive_us for k in kernels), time_us),
            steps_own_us=_or(_column(k.steps_exclusive_us for k in kernels), time_us),
            works=works_of(kernels),
            blocks=_column(k.blocks or None for k in kernels),
            crosses=np.array([_crosses(k) for k in kernels], np.int64),
            unread=unread,
            unwritten=unwritten,
        )

    def within(self, *regimes: str) -> Mask:
        """The rows of one of these regimes."""
        wanted = np.zeros(len(PARTS) + 1, bool)
        wanted[[_PLACE[r] for r in regimes]] = True
        found: Mask = wanted[self.part]
        return found


def works_of(kernels: Sequence[Kernel]) -> Works:
    """The work of all launches of each row.  Of a kind, one byte stands for all, and one FLOP for any."""
    numbers: dict[tuple[str | None, bool, bool, bool], int] = {}
    keys = (
        (k.dtype, k.matrix, k.family == "memcpy" and "PtoP" not in k.name, bool(k.flops)) for k in kernels
    )
    return Works(
        flops=_column(k.flops for k in kernels),
        bytes=_column(k.bytes for k in kernels),
        link_bytes=_column(k.link_bytes for k in kernels),
        kind=np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64),
        kinds=[
            Work(float(counts), 1.0, None, dtype, matrix, over_pcie=over_pcie)
            for dtype, matrix, over_pcie, counts in numbers
        ],
    )


def _crosses(k: Kernel) -> int:
    if k.family == "memset" or k.kind == "memset" or "DtoD" in k.name:
        return MEMORY
    return LINK if "PtoP" in k.name else PCIE


def _fused(kernels: Sequence[Kernel]) -> tuple[F64, F64]:
    """What is left of the bytes of elementwise kernels; of others all."""
    chained = [k.bytes if k.family == _FUSED_FAMILY and k.bytes else None for k in kernels]
    size = _or(_column(chained), np.array(np.inf))
    read, written = (
        _column(k.chained_in_bytes for k in kernels),
        _column(k.chained_out_bytes for k in kernels),
    )
    return np.maximum(0.0, 1 - read / size), np.maximum(0.0, 1 - (read + written) / size)


def _column(values: Iterable[float | None]) -> F64:
    """NaN where a value is ``None``."""
    return np.array(list(values), np.float64)


def _or(column: F64, other: F64) -> F64:
    """The other's value where this one's is not known."""
    return np.where(np.isnan(column), other, column)
