"""How far times may lie from zero, so that no sum or difference of them passes int64."""

from __future__ import annotations

import numpy as np

from rooflight.errors import TooLarge
from rooflight.trace.tables import I64

#: In ns: 95 years, until 2065 by an epoch clock.  A time and the base of its clock add up to at most two
#: of them, and two such sums differ by at most three.
MAX_NS = 3 * 10**18


def check_total(source: str, *durations: I64) -> None:
    """Refuse durations whose plain sum could pass int64: busy times and kernel sums add them up."""
    for column in durations:
        total = float(np.abs(column.astype(np.float64)).sum())
        if total > MAX_NS:
            raise TooLarge(
                f"too large: its durations add up to {total / 3.156e16:.0f} years",
                where=source,
                hint="the clock of the profiler was broken; record the trace again",
            )
