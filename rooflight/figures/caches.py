"""The roofline of a cache: bytes through L2 or L1 in place of those of device memory, where counted."""

from __future__ import annotations

from statistics import median

from msgspec.structs import replace

from rooflight.protocol import CacheTraffic, Ceiling, Document, Rank

#: What a byte is counted at, and what the x axis says of it.
MEMORIES = {"dram": "device memory", "l2": "L2", "l1": "L1"}


def at_cache(document: Document, memory: str) -> Document:
    """The document as the cache sees it: a row's bytes are those through it, unknown where not counted, and
    its roof is the cache's.  What rests on device memory (bounds, shares of the roof) is unknown.

    :class:`ValueError` for a memory that there is none of.
    """
    if memory not in MEMORIES:
        raise ValueError(f"no memory {memory!r}: there are {', '.join(MEMORIES)}")
    if memory == "dram":
        return document
    return replace(document, ranks=[_rank(r, memory) for r in document.ranks])


def memories_of(rank: Rank) -> list[str]:
    """The memories whose bytes are known of some row."""
    counted = {c.level for c in rank.caches}
    return [m for m in MEMORIES if m == "dram" or m in counted]


def _rank(rank: Rank, memory: str) -> Rank:
    rows = [c for c in rank.caches if c.level == memory]
    size = {c.kernel: c.bytes for c in rows}
    kernels = [
        replace(k, bytes=size.get(i), bound_us=None, roof_fraction=None, above_peak=False)
        for i, k in enumerate(rank.kernels)
    ]
    roofs = {key: replace(r, memory=_ceiling(rows)) for key, r in rank.roofs.items()}
    steps = [replace(s, work=[]) for s in rank.steps]
    inferred = [replace(s, work=[]) for s in rank.inferred_steps]
    return replace(rank, kernels=kernels, roofs=roofs, steps=steps, inferred_steps=inferred)


def _ceiling(rows: list[CacheTraffic]) -> Ceiling | None:
    """What the counters' own percentages make of the cache's peak, as the median of the rows."""
    peaks = [c.peak_bytes_per_s for c in rows if c.peak_bytes_per_s]
    return Ceiling(practical=median(peaks), origin="measured") if peaks else None
