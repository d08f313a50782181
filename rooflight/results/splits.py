"""How evenly an all-to-all is split."""

from __future__ import annotations

from collections.abc import Mapping

from rooflight.attribution.lists import whole_numbers


def skew(comm: Mapping[str, object]) -> float:
    """The largest part that a rank sends over the mean of its parts (In split size): 1 when all are alike,
    NaN where the split is not recorded, is cut short, or nothing is sent."""
    parts = whole_numbers(comm.get("In split size"))
    sent = sum(parts)
    if len(parts) < 2 or sent <= 0 or min(parts) < 0 or len(parts) != comm.get("Group size"):
        return float("nan")
    return max(parts) * len(parts) / sent
