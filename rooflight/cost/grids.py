"""Bytes of elementwise kernels whose inputs were not recorded, from name and grid.

PyTorch's vectorized and unrolled kernels take contiguous tensors of one size, four elements a thread (up to
the releases that name ``at::detail::Array``; aten/src/ATen/native/cuda/CUDALoops.cuh and thread_constants.h
of v1.8 to v2.1).  The name tells how many tensors there are and of which type, the grid how many elements,
up to what the last block leaves over.  FLOPs stay unknown, and the origin is ``inferred``.

What multiplies matrices is not inferred so: neither name nor grid holds the length of the sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rooflight.cost.launches import LaunchCosts
from rooflight.cost.model import INFERRED, UNKNOWN, Cost
from rooflight.dtypes import BY_NAME
from rooflight.kernels import KernelName
from rooflight.trace.tables import GpuKind, among, combined
from rooflight.trace.timeline import LaunchShape, Timeline

#: Elements that a thread takes.
PER_THREAD = 4
REASON = "from name and grid"
_FAMILIES = frozenset({"elementwise", "fill", "copy"})
_CONTIGUOUS = re.compile(
    r"^void at::native::(?:vectorized_elementwise_kernel<\d{1,2},|unrolled_elementwise_kernel<)"
    r".{1,2000}?at::detail::Array<char ?\*, ?(\d{1,2})>"
)
#: Kernels whose operands or result have several types, which the name tells only in part.
_SEVERAL_TYPES = re.compile(
    r"WithCast|[Cc]ompare|(?:^|::|_)(?:eq|ne|lt|gt|le|ge)_kernel|isnan|isinf|isfinite|signbit|logical|where"
    r"|mask|(?<!direct_)copy_kernel|complex|angle|polar|bernoulli|random|distribution"
)


def with_grids(timeline: Timeline, costs: LaunchCosts, kernels: Mapping[int, KernelName]) -> LaunchCosts:
    """The costs, unknown ones of elementwise kernels from what their names and grids tell.

    Not on HIP: a grid may count work-items there, and a thread takes another number of elements.
    """
    gpu = timeline.gpu
    unknown = np.array([c.origin == UNKNOWN for c in costs.costs], bool)
    named = [i for i, name in kernels.items() if name.family in _FAMILIES and _tensors(name)]
    lacking = unknown[costs.index] & (gpu.kind == GpuKind.KERNEL) & (gpu.shape >= 0)
    rows = timeline.valid_gpu[lacking[timeline.valid_gpu]]
    rows = rows[among(gpu.name[rows], np.array(named, np.int64))]
    if not rows.size or timeline.meta.is_hip:
        return costs
    _, first, launch = np.unique(
        combined(gpu.name[rows], gpu.shape[rows]), return_index=True, return_inverse=True
    )
    table = {cost: i for i, cost in enumerate(costs.costs)}
    places = []
    for row in rows[first].tolist():
        shape = timeline.launch_shape(int(gpu.shape[row]))
        cost = from_grid(kernels[int(gpu.name[row])], shape)
        places.append(int(costs.index[row]) if cost is None else table.setdefault(cost, len(table)))
    index = costs.index.copy()
    found = np.array(places, np.int32)[launch]
    told = ~unknown[np.minimum(found, unknown.size - 1)] | (found >= unknown.size)
    index[rows[told]] = found[told]
    return replace(costs, costs=tuple(table), index=index)


def from_grid(name: KernelName, shape: LaunchShape) -> Cost | None:
    """What a launch moves, ``None`` where name and grid leave it open.

    Example: vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, Array<char*, 3>> on 1,024 blocks of
    128 threads takes 1,024 * 128 * 4 = 524,288 elements: 8 bytes of each read, 4 written.
    """
    tensors, dtype = _tensors(name), BY_NAME.get(name.dtype or "")
    if not tensors or dtype is None or not shape.grid or not shape.block:
        return None
    size = math.prod(shape.grid) * math.prod(shape.block) * PER_THREAD * dtype.size
    return Cost(
        bytes_read=(tensors - 1) * size,
        bytes_written=size,
        origin=INFERRED,
        reason=REASON,
        dtype=dtype.name,
        family=name.family,
    )


def _tensors(name: KernelName) -> int:
    """How many tensors of one size and type the kernel takes, by its name; 0 where it does not tell."""
    found = _CONTIGUOUS.match(name.name)
    if found is None or name.dtype not in BY_NAME or _SEVERAL_TYPES.search(name.name):
        return 0
    return int(found[1]) if 1 <= int(found[1]) <= 4 else 0
