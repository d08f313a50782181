"""Why a group of launches was faster than its device's datasheet allows (DEFINITIONS §10, ``above_peak``).

Nothing beats a right bound, so either the bound is not of what really ran, or the recording is wrong.  The
causes that leave a trace are looked for; where none does, that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.hardware import Gpu, find
from rooflight.protocol import Roofs
from rooflight.roofline.bounds import compute_ceiling
from rooflight.roofline.groups import Group
from rooflight.trace.timeline import Timeline
from rooflight.units import GIGA, NS_PER_S, NS_PER_US

WINOGRAD = "Winograd or FFT: fewer multiplications than the direct convolution that is counted"
CLOCK = "its clock may have run above the one of the datasheet's peak"
CACHE = "a part of its data may have been in the cache"
TICKS = "the recording counts whole microseconds"
UNEXPLAINED = "nothing in the recording explains it: its cost or its time is wrong"

_TRANSFORMS = ("winograd", "fft")
_CONVOLUTIONS = frozenset({"conv_fwd", "conv_bwd", "conv_dgrad", "conv_wgrad"})
_MIB = 1024**2


def causes(
    timeline: Timeline, links: Links, groups: Sequence[Group], roofs: Sequence[Roofs]
) -> dict[int, str]:
    """The likely cause by place in ``groups``, for those that beat the datasheet."""
    above = [i for i, g in enumerate(groups) if g.bound.above_datasheet(g.t_ns)]
    if not above:
        return {}
    together = _Together(timeline, links)
    return {i: _cause(groups[i], roofs[groups[i].device], together) for i in above}


class _Together:
    """The kernels that one op launched."""

    def __init__(self, timeline: Timeline, links: Links) -> None:
        self._timeline, self._op = timeline, links.op
        self._order = np.argsort(links.op, kind="stable")
        self._sorted = links.op[self._order]

    def names(self, g: Group) -> Iterator[str]:
        """The names of all kernels of the op of the group's first launch, its own first."""
        yield g.name.name
        op = self._op[g.rows[0]]
        if op < 0:
            return
        low, high = np.searchsorted(self._sorted, [op, op + 1]).tolist()
        for row in self._order[low : min(high, low + 100)].tolist():
            yield self._timeline.names[self._timeline.gpu.name[row]]


def _cause(g: Group, roofs: Roofs, together: _Together) -> str:
    gpu = find(roofs.gpu_id or "")
    roof = compute_ceiling(g.work, roofs)
    compute_ns = _time(g.work.flops, roof.datasheet if roof else None)
    memory_ns = _time(g.work.bytes, roofs.memory.datasheet if roofs.memory else None)
    least_ns = g.bound.datasheet_ns or 0.0
    by_compute = compute_ns >= memory_ns
    found = _of_compute(g, gpu, least_ns / g.t_ns, together) if by_compute else _of_memory(g, gpu, least_ns)
    return found or _of_clock(g, least_ns) or UNEXPLAINED


def _of_compute(g: Group, gpu: Gpu | None, ratio: float, together: _Together) -> str | None:
    if g.cost.family in _CONVOLUTIONS and any(
        word in name.lower() for name in together.names(g) for word in _TRANSFORMS
    ):
        return WINOGRAD
    return CLOCK if gpu is not None and ratio <= _clock_ratio(gpu, g.work.dtype) else None


def _clock_ratio(gpu: Gpu, dtype: str | None) -> float:
    """How far above its datasheet's peak the model is known to go: by its highest clock, or measured."""
    clocks = gpu.boost_mhz / gpu.tensor_mhz if gpu.boost_mhz and gpu.tensor_mhz else 1.0
    return max(clocks, gpu.efficiency.get(dtype or "", 1.0))


def _of_memory(g: Group, gpu: Gpu | None, least_ns: float) -> str | None:
    """What it reads may be left in the cache by the kernel before, and what it writes may stay there: at most
    twice the cache need not go to memory."""
    if gpu is None or not gpu.mem_bw_gbs:
        return None
    cache_mib = max(gpu.l2_mib or 0, gpu.llc_mib or 0)
    saved_ns = _time(2 * cache_mib * _MIB, gpu.mem_bw_gbs * GIGA)
    return CACHE if least_ns - saved_ns <= g.t_ns else None


def _of_clock(g: Group, least_ns: float) -> str | None:
    """Old recordings count in whole microseconds, and one more or less is much for a short kernel."""
    whole = not np.any(g.durations % NS_PER_US)
    return TICKS if whole and least_ns <= g.t_ns + NS_PER_US else None


def _time(amount: float | None, per_s: float | None) -> float:
    return amount / per_s * NS_PER_S if amount is not None and per_s else 0.0
