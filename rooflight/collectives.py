"""Communication in the one JSON: collectives that are alike, what kernels beside them lose, who is late."""

from __future__ import annotations

from msgspec import Struct, field

from rooflight.bounded import NonNegative, Text, Time


class Communication(Struct):
    """Collectives that are alike: same kind, group, element type, message size and device.

    ``message_bytes`` and ``bus_bytes`` are those of the median collective, the other figures totals over its
    ``count``, except the rates, which are medians.  ``basis`` tells what the rates rest on: ``transfer``, all
    ranks' recordings; ``seen_ranks``, those of some; ``duration``, the kernel's own time, waiting included.
    """

    kind: Text
    group: Text = ""
    ranks: int | None = None
    dtype: str | None = None
    device: str = "0"
    count: NonNegative = 0
    sizes: NonNegative = 1
    message_bytes: NonNegative | None = None
    bus_bytes: NonNegative | None = None
    time_us: Time = 0.0
    p50_us: float | None = None
    exposed_us: Time = 0.0
    exposed_pct: float | None = None
    matched: NonNegative = 0
    wait_us: float | None = None
    transfer_us: float | None = None
    basis: str = "duration"
    algorithm_gbs: float | None = None
    bus_gbs: float | None = None
    link_gbs: float | None = None
    link_fraction: float | None = None
    reason: str = ""


class Contention(Struct):
    """What communication beside it costs a kernel group: ``kernel`` is its row of the kernel table."""

    kernel: NonNegative
    overlapped_us: Time
    overlapped_pct: float | None
    overlapped_count: NonNegative
    alone_count: NonNegative
    overlapped_p50_us: float | None = None
    alone_p50_us: float | None = None
    slowdown: float | None = None


class Collective(Struct):
    """One collective over the ranks: who came last and who waited (DEFINITIONS §8)."""

    n: int
    group: str
    straggler: int | None
    transfer_us: float | None
    wait_us: dict[str, float] = field(default_factory=dict)
