"""How much of the CPUs others use while we measure: what they take, our figures lack."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

#: Fields of the first row of /proc/stat that are no work: idle and iowait.
_IDLE = (3, 4)


@dataclass(frozen=True, slots=True)
class Load:
    """CPU seconds since boot: of everything (``total``), of work (``busy``, stolen time included), and
    of this process."""

    total: float
    busy: float
    own: float


def now(stat: Path = Path("/proc/stat")) -> Load | None:
    """The counters, ``None`` where the kernel does not tell."""
    try:
        fields = stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        ticks = [int(field) for field in fields]
    except (OSError, ValueError):
        return None
    if len(ticks) < 8:
        return None
    per_s = os.sysconf("SC_CLK_TCK")
    times = os.times()
    busy = sum(tick for i, tick in enumerate(ticks) if i not in _IDLE)
    return Load(sum(ticks) / per_s, busy / per_s, times.user + times.system)


def others(before: Load | None, after: Load | None) -> float | None:
    """Share (0 to 1) of all CPUs that others used in between; ``None`` when unknown."""
    if before is None or after is None or after.total <= before.total:
        return None
    foreign = (after.busy - before.busy) - (after.own - before.own)
    return min(1.0, max(0.0, foreign / (after.total - before.total)))
