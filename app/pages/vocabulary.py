"""Words of regimes, parts, grades and flags, as a page writes them."""

from __future__ import annotations

from rooflight.metrics import METRICS
from rooflight.protocol import IDLE_PARTS, PARTS

NAMES = {part: METRICS[f"part.{part}"].label for part in PARTS}
#: What a part means, shown on hover.
MEANING = {part: METRICS[f"part.{part}"].explanation for part in PARTS}

#: Colour class of a part: launch and dispatch share latency's, sync shares host's.
COLOURS = {"unknown_idle": "unknown"}

GRADES = {"complete": "Complete", "usable": "Usable", "unreliable": "Unreliable"}

#: Parts in which nothing useful runs are hatched, so that colour is never alone.
IDLE = frozenset(IDLE_PARTS)

ORIGINS = {
    "measured": "hardware counters",
    "modelled": "from shapes and dtypes",
    "inferred": "from the kernel's name and grid, or the same kernel elsewhere",
    "unknown": "no cost is known",
}

CEILINGS = {
    "measured": "measured on this device",
    "factor": "known factor of this model",
    "family": "usual factor of this family",
    "assumed": "assumed factor",
}


def colour(part: str) -> str:
    """The class ``r-…`` of a part or a regime."""
    return COLOURS.get(part, part if part in NAMES else "unknown")


def name(part: str) -> str:
    """The word for a part or a regime; one that we do not know is shown as it came."""
    return NAMES.get(part, part)
