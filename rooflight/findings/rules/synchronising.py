"""The host waits for the device, and the device then for the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from rooflight.attribution.idle import is_sync
from rooflight.attribution.intervals import Clipper, measure
from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import among

_SHOWN = 3


@rule(
    "synchronising-calls",
    "Calls that wait for the device",
    regime="host",
    why="While the host waits for a result it launches nothing, and the device runs dry.",
    fix="Keep losses and metrics on the device and read them every N steps (.item() less often, .detach() "
    "instead); copy with non_blocking=True from pinned memory; avoid masks and shapes that depend on values "
    "(nonzero, boolean indexing).",
    false_alarms="One wait at the end of a step that is measured is the measurement's own.",
)
def synchronising(facts: Facts) -> Iterator[Found]:
    """Idle time of the device inside synchronising calls: .item(), stream and event synchronize, blocking
    copies."""
    when = facts.idle("sync")
    counts = _calls(facts)
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]
    listed = ", ".join(f"{name}: {facts.times(n)}" for name, n in most)
    seen = Seen(f"{amount(facts, when)}; {listed}", steps=facts.steps_with_most("sync"))
    yield Found.over(when, (seen,), float(measure(when)), "no call waits for the device within a step")


def _calls(facts: Facts) -> Counter[str]:
    """The synchronising calls of the counted time by name."""
    host, names = facts.timeline.host, facts.timeline.names
    waits = [i for i, name in enumerate(names) if is_sync(name)]
    rows = np.flatnonzero(among(host.name, np.array(waits, np.int64)))
    inside = Clipper(facts.windows).within(host.start[rows], host.start[rows] + 1) > 0
    return Counter(names[i] for i in host.name[rows[inside]].tolist())
