"""A tensor as the profiler saw it, and how many different elements it holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from rooflight.dtypes import DType

INT64_MAX = 2**63 - 1
MAX_RANK = 64  # c10 sets no limit; torch itself cannot make more dims than this in an iterator
_COUNTED_EXTENT = 1 << 22  # bytes of scratch for the rare overlapping layouts that need counting


class Unknown(Exception):  # noqa: N818 - an answer, not a failure
    """A formula cannot tell; ``reason`` says why, in one snake_case word that reaches the user."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def product(dims: Sequence[int]) -> int:
    """Number of elements of a shape, 1 for a scalar.  Raises Unknown past what a tensor can hold."""
    n = math.prod(dims)
    if n > INT64_MAX:
        raise Unknown("out_of_range")
    return n


class Piece(Struct, frozen=True, gc=False):
    """A stretch of memory traffic: ``elements`` of a type; ``dtype`` is None when not recorded."""

    elements: int
    dtype: DType | None

    @property
    def bytes(self) -> int | None:
        """Size in bytes; nothing weighs 0 whatever its type."""
        if self.elements == 0:
            return 0
        return None if self.dtype is None else self.elements * self.dtype.size


class Tensor(Struct, frozen=True, gc=False):
    """Dims and strides in elements, the outermost first.  ``strides`` None means contiguous."""

    dims: tuple[int, ...]
    dtype: DType | None = None
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        return product(self.dims)

    @property
    def unique(self) -> int:
        """Different elements behind the view: an expanded dim (stride 0) counts once, and windows
        that overlap count what they share once."""
        return self.numel if self.strides is None else distinct_offsets(self.dims, self.strides)

    @property
    def traffic(self) -> Piece:
        """What reading (or writing) all of it moves."""
        return Piece(self.unique, self.dtype)

    def like(self, dtype: DType | None = None) -> Piece:
        """A fresh, dense tensor of the same dims, of ``dtype`` or the same type."""
        return Piece(self.numel, dtype or self.dtype)

    def is_contiguous(self) -> bool | None:
        """Whether the elements lie in row-major order without gaps; None when strides are unknown."""
        if self.strides is None:
            return None
        expected = 1
        for n, step in zip(reversed(self.dims), reversed(self.strides), strict=True):
            if n > 1 and step != expected:
                return False
            expected *= n
        return True


def distinct_offsets(dims: Sequence[int], strides: Sequence[int]) -> int:
    """How many different values ``sum(i * stride)`` takes.

    Dims are taken from the smallest stride up and kept as levels (step, count), each wider than all
    below it together, so that their counts multiply.  A dim that is a multiple of the top level's step
    and starts inside it only lengthens that level: that is how sliding windows overlap.  Any other
    overlap is counted on a bitmap when it is small, and is unknown when it is not.
    """
    if 0 in dims:
        return 0
    axes = sorted((abs(s), n) for n, s in zip(dims, strides, strict=True) if n > 1 and s != 0)
    levels: list[tuple[int, int]] = []
    reach = 0  # largest offset so far
    for step, n in axes:
        if step > reach:
            levels.append((step, n))
        else:
            top, count = levels[-1]
            if step % top or step > top * count:
                return _counted(axes)
            levels[-1] = (top, step // top * (n - 1) + count)
        reach += step * (n - 1)
    return product([count for _, count in levels])


def _counted(axes: Sequence[tuple[int, int]]) -> int:
    reach = sum(step * (n - 1) for step, n in axes)
    if reach >= _COUNTED_EXTENT:
        raise Unknown("overlapping_strides")
    seen = np.zeros(reach + 1, dtype=bool)
    seen[0] = True
    for step, n in axes:
        covered = 1  # of the n shifts; each pass doubles them
        while covered < n:
            more = min(covered, n - covered)
            seen[more * step :] |= seen[: reach + 1 - more * step].copy()
            covered += more
    return int(np.count_nonzero(seen))
