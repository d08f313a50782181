"""Steps that nobody marked: the rounds that can be told (DEFINITIONS §6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.attribution.periods import find_period
from rooflight.attribution.steps import StepSpan, annotation_rows
from rooflight.trace.tables import distinct
from rooflight.trace.timeline import Timeline

_OPTIMIZER = re.compile(r"Optimizer\.step#.+\.step")
OPTIMIZER, PERIOD = "optimizer", "period"
_MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class InferredSteps:
    """Steps that nobody marked; ``source`` is :data:`OPTIMIZER` or :data:`PERIOD`, ``basis`` the same in
    words: they rest on the calls of an optimizer, or on a loop of launches."""

    spans: list[StepSpan]
    source: str
    basis: str


def infer_steps(timeline: Timeline, links: Links, *, begins_at_step: bool = False) -> InferredSteps | None:
    """Steps of a recording without marks: from one end of the optimizer's step to the next, else the
    rounds of a loop of launches; ``None`` where neither is there.

    ``begins_at_step``: the recording was begun as an optimizer's step ended, so its first step is whole.
    """
    return _by_optimizer(timeline, begins_at_step) or _by_period(timeline, links)


def _by_optimizer(timeline: Timeline, begins_at_step: bool) -> InferredSteps | None:
    """A step ends where the first optimizer's step does; what came before the first end is no whole step,
    unless it is known to be one."""
    host = timeline.host
    rows = annotation_rows(timeline, (i for i, n in enumerate(timeline.names) if _OPTIMIZER.fullmatch(n)))
    if not rows.size:
        return None
    rows = rows[np.lexsort((-host.end[rows], host.start[rows]))]
    first = rows[0]
    rows = rows[(host.name[rows] == host.name[first]) & (host.thread[rows] == host.thread[first])]
    ends = distinct(np.maximum.accumulate(host.end[rows])).tolist()
    if begins_at_step:
        ends.insert(0, int(host.start.min()))
    spans = [StepSpan(n, a, b, int(host.thread[first])) for n, (a, b) in enumerate(pairwise(ends))]
    basis = f"the calls of {_short(timeline.names[host.name[first]])}"
    return InferredSteps(spans, OPTIMIZER, basis) if spans else None


def _by_period(timeline: Timeline, links: Links) -> InferredSteps | None:
    period = find_period(timeline, links)
    if period is None:
        return None
    start = timeline.host.start
    columns = (period.n, start[period.begin], start[period.end], timeline.host.thread[period.begin])
    spans = [StepSpan(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]
    anchor = _short(timeline.names[timeline.gpu.name[period.anchor]])
    return InferredSteps(spans, PERIOD, f"a loop of {period.launches} launches from {anchor} to the next")


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"
