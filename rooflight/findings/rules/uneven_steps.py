"""Steps that take much longer than most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.attribution.intervals import union
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import I64

_FEWEST = 5
_FAR = 1.25


@rule(
    "uneven-steps",
    "Some steps take much longer than most",
    why="A mean over steps hides the few that are slow; what they wait for is seldom what the others do.",
    fix="Look at the parts of the slowest steps: garbage collection, checkpoints, evaluation, a slow "
    "batch, another "
    "program on the host.",
    false_alarms="Steps of different work (accumulation, variable lengths) differ by design.",
)
def uneven_steps(facts: Facts) -> Iterator[Found]:
    """Of at least five steps, the 99th percentile is 25 % above the median or more."""
    lengths = np.array([s.end - s.start for s in facts.spans], np.int64)
    if lengths.size < _FEWEST:
        return
    median, high = (_percentile(np.sort(lengths), p) for p in (50, 99))
    if high < _FAR * median:
        return
    slow = [i for i in range(lengths.size) if lengths[i] >= _FAR * median]
    slowest = sorted(slow, key=lambda i: (-lengths[i], i))[:3]
    text = f"p99 {high / 1e6:.3g} ms against a median of {median / 1e6:.3g} ms"
    yield Found.over(
        union(*np.array([(facts.spans[i].start, facts.spans[i].end) for i in slow], np.int64).T),
        (Seen(text, steps=tuple(facts.spans[i].n for i in slowest)),),
        float((lengths[slow] - median).sum()),
        "none of the steps that take a quarter longer takes longer than the median one",
    )


def _percentile(ordered: I64, p: int) -> float:
    """With linear interpolation, as numpy's, which imports masked arrays."""
    at, rest = divmod((ordered.size - 1) * p, 100)
    low, high = int(ordered[at]), int(ordered[min(at + 1, ordered.size - 1)])
    return low + (high - low) * rest / 100
