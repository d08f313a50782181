"""What a formula answers: the work of one call, before types are weighed into bytes."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from rooflight.cost.tensor import Piece, Tensor
from rooflight.dtypes import DType

#: The reason of ops whose work is that of the ops inside them.
COMPOSITE = "composite"
Moved = Tensor | Piece | None


class Work(Struct, frozen=True, gc=False):
    """``flops`` is a count or None; ``reads`` and ``writes`` are the pieces moved from and to device
    memory, None when their number of elements is unknown.  ``dtype`` is the type that is calculated
    with, ``reason`` what to tell about the figures, ``link_bytes`` what crosses the link."""

    flops: int | None
    reads: tuple[Piece, ...] | None
    writes: tuple[Piece, ...] | None
    dtype: DType | None = None
    reason: str = ""
    link_bytes: int | None = None


def pieces(*moved: Moved | Iterable[Moved]) -> tuple[Piece, ...]:
    """The traffic of tensors and pieces; arguments that were not given are left out."""
    found: list[Piece] = []
    for m in moved:
        if isinstance(m, Piece):
            found.append(m)
        elif isinstance(m, Tensor):
            found.append(m.traffic)
        elif m is not None:
            found.extend(pieces(*m))
    return tuple(found)


def total_bytes(moved: tuple[Piece, ...] | None) -> int | None:
    """Bytes of all pieces; None as soon as one is unknown."""
    if moved is None:
        return None
    sizes = [p.bytes for p in moved]
    return None if None in sizes else sum(s for s in sizes if s is not None)


NOTHING = Work(0, (), ())
