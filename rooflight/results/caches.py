"""What kernel groups moved through the caches, where hardware counters tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from rooflight.counters.work import Counted, Traffic
from rooflight.protocol import CacheTraffic
from rooflight.roofline.groups import Groups

_MOST = (1 << 63) - 1


def cache_traffic(groups: Groups, counted: Mapping[int, Counted], place: Sequence[int]) -> list[CacheTraffic]:
    """Traffic of the groups all of whose launches were counted, by row of the kernel table.

    ``counted`` is by row of the GPU events; ``place`` is the row of the table of each group.
    """
    found: defaultdict[tuple[int, str], list[Traffic]] = defaultdict(list)
    for row, what in counted.items():
        for level, traffic in (("l2", what.l2), ("l1", what.l1)):
            if traffic is not None:
                found[int(groups.of_event[row]), level].append(traffic)
    rows = [
        CacheTraffic(place[group], level, sum(t.bytes for t in each), _peak(each))
        for (group, level), each in found.items()
        if group >= 0 and len(each) == groups.rows[group].rows.size
    ]
    return sorted((r for r in rows if r.bytes <= _MOST), key=lambda r: (r.kernel, r.level))


def _peak(each: Sequence[Traffic]) -> float | None:
    known = [t.peak for t in each if t.peak is not None]
    return median(known) if known else None
