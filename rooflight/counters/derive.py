"""From the metrics of one launch to its FLOPs and bytes, whoever made the device."""

from __future__ import annotations

from rooflight.counters import amd, nvidia
from rooflight.counters.work import Counted, Executed, Kernel, Moved, Traffic, Values

_MOST = (1 << 63) - 1


def derive(values: Values, kernel: Kernel) -> Counted:
    """What the metrics amount to; what they leave open is unknown.  No two vendors share a metric."""
    ran = nvidia.executed(values, kernel) or amd.executed(values, kernel)
    went = nvidia.moved(values) or amd.moved(values, kernel)
    l2, l1 = (nvidia.cached(values, unit) for unit in (nvidia.L2, nvidia.L1))
    return Counted(
        ran if _can_be(ran) else None,
        went if _can_be(went) else None,
        l2 if _can_be(l2) else None,
        l1 if _can_be(l1) else None,
    )


def _can_be(found: Executed | Moved | Traffic | None) -> bool:
    """Whether the numbers are ones that a launch can have: counters of different passes may contradict."""
    if isinstance(found, Executed):
        return 0 <= found.flops <= _MOST
    if isinstance(found, Traffic):
        return 0 <= found.bytes <= _MOST
    parts = () if found is None else (found.total, found.read or 0, found.written or 0)
    return all(0 <= part <= _MOST for part in parts)
