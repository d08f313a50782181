"""The query of the Run page: what one form changes, the others carry along."""

from __future__ import annotations

from collections.abc import Mapping

_VIEW = ("rank", "step", "q", "regime", "sort", "pick", "row", "level")
_PRICE = ("price", "currency", "instance", "provider", "region")
_WHATIF = (
    "gpu", "dtype", "roofs_reached", "fused", "overlapped", "input_ready", "there", "there_price",
)  # fmt: skip
_LONGEST = 2_000

KEPT_BY_PRICE = _VIEW + _WHATIF
KEPT_BY_WHATIF = _VIEW + _PRICE


def carried(query: Mapping[str, str]) -> dict[str, str]:
    """Every name that the page knows, with what the address says of it, "" where nothing."""
    return {name: query.get(name, "")[:_LONGEST] for name in (*_VIEW, *_PRICE, *_WHATIF)}
