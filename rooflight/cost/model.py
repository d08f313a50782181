"""What a cost is, and the event that it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

MEASURED, MODELLED, INFERRED, UNKNOWN = "measured", "modelled", "inferred", "unknown"


@dataclass(frozen=True, slots=True)
class OpCall:
    """An op as the profiler recorded it: ``dims``, ``types``, ``strides`` and ``concrete`` hold one
    entry per argument (``Input Dims``, ``Input type``, ``Input Strides``, ``Concrete Inputs``).

    ``gpu_args`` are the args of the GPU event (memcpy, memset, Triton), ``comm`` those of a collective.
    ``output_dims`` are the dims of the (first) output where the row cannot tell them and another row of
    the same call can (a convolution without recorded strides: the gradient that flows back into it);
    ``output_source`` names that row, and becomes the reason of the cost.  ``list_type`` is the element
    type of its lists of tensors, which rows never hold and a kernel's name may tell.

    An execution trace tells more: ``results`` has the (dims, element type) of every tensor that came out, the
    type of a list of tensors is a list of their element types, and ``source`` names it where inputs are from
    it.
    """

    op: str
    dims: tuple[Any, ...] = ()
    types: tuple[str, ...] = ()
    strides: tuple[Any, ...] = ()
    concrete: tuple[str, ...] = ()
    gpu_args: Mapping[str, Any] = field(default_factory=dict)
    comm: Mapping[str, Any] = field(default_factory=dict)
    output_dims: tuple[int, ...] | None = None
    output_source: str = ""
    list_type: str = ""
    results: tuple[Any, ...] = ()
    source: str = ""


class Cost(Struct, frozen=True, gc=False):
    """FLOPs and device-memory bytes of one call; ``None`` is unknown and never means 0.

    ``dtype`` is the element type whose compute roof holds (a name of :mod:`rooflight.dtypes`),
    ``matrix`` whether that is the matrix (tensor core) roof.  ``family`` names the op family, in the
    vocabulary of the kernel names.  ``link_bytes`` are the bytes that cross PCIe or the GPU link.
    ``bytes_total`` is there where reads and writes were counted together.
    """

    flops: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    origin: str = UNKNOWN
    reason: str = ""
    dtype: str | None = None
    matrix: bool = False
    family: str | None = None
    link_bytes: int | None = None
    bytes_total: int | None = None

    @property
    def bytes(self) -> int | None:
        """Read plus written; unknown when either is, and they were not counted together."""
        if self.bytes_total is not None:
            return self.bytes_total
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written
