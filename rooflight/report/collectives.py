"""A row of communication in words, for every surface."""

from __future__ import annotations

from collections.abc import Sequence

from rooflight.collectives import Communication, Contention

TOP_COLLECTIVES = 12
TOP_SLOWED = 5
_DASH = "–"
_PREFIXES = ("B", "kB", "MB", "GB", "TB")


def collective(row: Communication) -> str:
    """What it is, short: ``allreduce bf16 52.4 MB × 8 ranks``."""
    sizes = f" ({row.sizes} sizes)" if row.sizes > 1 else ""
    size = "size unknown" if row.message_bytes is None else f"{decimal(row.message_bytes)}{sizes}"
    ranks = "" if row.ranks is None else f" × {row.ranks:,} ranks"
    return " ".join(filter(None, (row.kind, row.dtype, size))) + ranks


def decimal(size: int) -> str:
    """Bytes with a decimal prefix and three digits: ``52.4 MB``."""
    value, at = float(size), 0
    while value >= 999.5 and at < len(_PREFIXES) - 1:
        value, at = value / 1000, at + 1
    return f"{value:,.0f} B" if at == 0 else f"{value:,.3g} {_PREFIXES[at]}"


def bandwidth(row: Communication) -> str:
    """Bus bandwidth in GB/s, a lower bound marked as one."""
    return _DASH if row.bus_gbs is None else f"{_least(row)}{row.bus_gbs:,.3g}"


def of_link(row: Communication) -> str:
    """Share of the link's practical roof, a lower bound marked as one."""
    if row.link_fraction is None:
        return _DASH
    pct = 100 * row.link_fraction
    return f"{_least(row)}{pct:.0f} %" if pct >= 1 else f"{_least(row)}{pct:.1g} %"


def slowed(contention: Sequence[Contention]) -> list[Contention]:
    """Those kernels whose launches are known to be slower beside communication, by what that costs."""
    known = [c for c in contention if _told(c) and c.slowdown is not None and c.slowdown > 1]
    return sorted(known, key=lambda c: (-_lost(c), c.kernel))[:TOP_SLOWED]


def slower(c: Contention) -> str:
    """By how much one of them is slower, in words."""
    return f"{c.overlapped_p50_us:,.1f} µs, alone {c.alone_p50_us:,.1f} µs (× {c.slowdown:.2f})"


def _told(c: Contention) -> bool:
    # A document that somebody else wrote may lack the medians that its quotient is of.
    return c.overlapped_p50_us is not None and c.alone_p50_us is not None


def _least(row: Communication) -> str:
    return "" if row.basis == "transfer" else "≥"


def _lost(c: Contention) -> float:
    """The time that its overlapped launches would not have taken alone, in µs."""
    return c.overlapped_us * (1 - 1 / c.slowdown) if c.slowdown else 0.0
