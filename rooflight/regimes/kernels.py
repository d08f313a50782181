"""The regime of a kernel group: what keeps its launches from being shorter (DEFINITIONS §15)."""

from __future__ import annotations

from msgspec import Struct

from rooflight.roofline.bounds import Bound

#: Share of a roof from which on it is what holds a kernel back: the vendor's own speed-of-light rule.
THRESHOLD = 0.6
TINY_NS = 5_000
LOW_OCCUPANCY = 0.25


class KernelFacts(Struct, frozen=True, gc=False):
    """What is known of a group.

    ``t_ns`` is the median launch, ``kind`` kernel, memcpy or memset; ``origin`` that of its cost;
    ``never_matrix`` whether its family never multiplies matrices; ``blocks`` the product of the grid;
    ``occupancy`` theoretical, 0 to 1.  ``None`` is unknown.
    """

    t_ns: float
    bound: Bound
    kind: str = "kernel"
    communication: bool = False
    origin: str = "unknown"
    family: str | None = None
    never_matrix: bool = False
    blocks: int | None = None
    sm_count: int | None = None
    occupancy: float | None = None
    is_hip: bool = False


class Verdict(Struct, frozen=True, gc=False):
    """``reason`` is a code (tiny, underfilled, low_occupancy, inefficient) for ``latency``, words else;
    ``limiter`` says of ``latency`` in words what kept the launch from filling the device."""

    regime: str
    reason: str = ""
    limiter: str | None = None


def kernel_regime(facts: KernelFacts, *, threshold: float = THRESHOLD) -> Verdict:
    """The one regime of a group; ``unknown`` rather than a guess."""
    if facts.communication:
        return Verdict("communication")
    if facts.kind in ("memcpy", "memset"):
        return Verdict("copy")
    if facts.t_ns <= 0:
        return Verdict("unknown", "its launches took no measurable time")
    u_c, u_m = _share(facts.bound.compute_ns, facts.t_ns), _share(facts.bound.memory_ns, facts.t_ns)
    if u_c is not None and u_m is not None:
        return _by_both(facts, u_c, u_m, threshold)
    if u_m is not None:
        return _by_bytes(facts, u_m, threshold)
    if u_c is not None:
        return _by_flops(u_c, threshold)
    return Verdict("unknown", _why_unknown(facts.bound))


def latency_reason(facts: KernelFacts) -> str:
    """Why neither resource is busy: the first that holds of tiny, underfilled, low_occupancy."""
    if facts.t_ns < TINY_NS:
        return "tiny"
    # A HIP grid in a trace may count work-items, so a small one proves nothing.
    filled = facts.is_hip or facts.blocks is None or facts.sm_count is None
    if not filled and (facts.blocks or 0) < (facts.sm_count or 0):
        return "underfilled"
    if facts.occupancy is not None and facts.occupancy < LOW_OCCUPANCY:
        return "low_occupancy"
    return "inefficient"


def _by_both(facts: KernelFacts, u_c: float, u_m: float, threshold: float) -> Verdict:
    if u_c >= u_m and u_c >= threshold:
        return Verdict("compute", _busy(u_c, "compute"))
    if u_m > u_c and u_m >= threshold:
        return Verdict("memory", _busy(u_m, "memory"))
    return Verdict("latency", latency_reason(facts))


def _by_bytes(facts: KernelFacts, u_m: float, threshold: float) -> Verdict:
    if u_m >= threshold:
        return Verdict("memory", _busy(u_m, "memory"))
    if facts.origin == "inferred" and facts.never_matrix:
        # Arithmetic outside the matrix units that moves this few bytes cannot fill them either.
        return Verdict("latency", latency_reason(facts))
    return Verdict("unknown", f"{_busy(u_m, 'memory')}, and its compute roof or FLOPs are unknown")


def _by_flops(u_c: float, threshold: float) -> Verdict:
    if u_c >= threshold:
        return Verdict("compute", _busy(u_c, "compute"))
    return Verdict("unknown", f"{_busy(u_c, 'compute')}, and its memory roof or bytes are unknown")


def _busy(share: float, roof: str) -> str:
    return f"{100 * share:.0f} % of the {roof} roof"


def _why_unknown(bound: Bound) -> str:
    return "FLOPs and bytes are unknown" if bound.peak_known else "no roof is known for its work"


def _share(bound_ns: float | None, t_ns: float) -> float | None:
    return None if bound_ns is None else bound_ns / t_ns
