"""What hardware counters counted, launch by launch, as the tools give it: metrics by their own names.

What a metric means for FLOPs and bytes is said in :mod:`rooflight.counters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Metrics of a recording's own counters are kept for so many launches.
MAX_LAUNCHES = 100_000


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """One launch of a kernel while its counters ran.

    ``grid`` counts blocks and ``block`` threads; ``threads`` is the whole launch where a tool tells only
    that.  ``process`` and ``device`` are the tool's own words for where it ran.  A metric that the tool could
    not tell is not in ``values``.  ``correlation`` is -1 where the launch is only known by its order.
    """

    name: str
    values: Mapping[str, float]
    process: str = ""
    device: str = ""
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    threads: int | None = None
    correlation: int = -1


@dataclass(frozen=True, slots=True)
class CounterFile:
    """The counted launches of one file, in the order in which they ran.

    ``unavailable`` counts values that the tool named and could not tell.
    """

    source: str
    launches: tuple[CountedLaunch, ...]
    unavailable: int = 0


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A counted launch of a recording: ``name`` indexes its names, ``metrics`` its sets of metrics, whose
    values these are."""

    name: int
    device: str
    correlation: int
    metrics: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CounterRows:
    """The counters that a recording holds itself; ``left_out`` counts launches beyond :data:`MAX_LAUNCHES`
    and values that are no counts."""

    metrics: tuple[tuple[str, ...], ...] = ()
    rows: tuple[CounterRow, ...] = ()
    left_out: int = 0

    def launches(self, names: tuple[str, ...]) -> tuple[CountedLaunch, ...]:
        """The launches by the names of the recording."""
        return tuple(
            CountedLaunch(
                name=names[row.name],
                values=dict(zip(self.metrics[row.metrics], row.values, strict=True)),
                device=row.device,
                correlation=row.correlation,
            )
            for row in self.rows
        )


NO_COUNTERS = CounterRows()
