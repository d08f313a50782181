"""One row per idle gap: when, why, what was open on the host meanwhile, and which work ended it.

A gap is a maximal interval without GPU work on its device (DEFINITIONS §16).  An entry that is not known is
-1 in a column of whole numbers and the empty text elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflight.attribution.frames import source_frames
from rooflight.attribution.idle import CAUSES
from rooflight.attribution.launches import Links
from rooflight.attribution.steps import StepSpan
from rooflight.regimes.ownership import summed_by
from rooflight.results.idle import frame_text
from rooflight.results.launches import Columns
from rooflight.results.stretches import Gaps, Stretches
from rooflight.trace.tables import I64, values_at
from rooflight.trace.timeline import Timeline


def gap_columns(
    timeline: Timeline,
    links: Links,
    gaps: Mapping[int, Gaps],
    idle: Mapping[int, Stretches],
    spans: Sequence[StepSpan],
) -> Columns:
    """The gaps of all devices in order of their start.

    ``input_ns`` to ``unknown_idle_ns`` add up to ``dur_ns``, over the gaps to the parts of the recording;
    ``cause`` is the largest of them.  ``frame`` explains the longest stretch of one cause in the gap and
    ``python`` is the frame of the source around it (:class:`rooflight.results.stretches.Stretches`).
    ``first_step`` and ``last_step`` are those that the gap reaches into.  ``ended_by`` is the name of the
    GPU work that ends it, ``op`` that of its op.
    """
    parts = [_of_device(timeline, links, d, gaps[d], idle[d], spans) for d in gaps]
    if not parts:
        return {}
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    order = np.argsort(columns["start_ns"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _of_device(
    timeline: Timeline, links: Links, device: int, gaps: Gaps, s: Stretches, spans: Sequence[StepSpan]
) -> Columns:
    n, each = gaps.start.size, len(CAUSES)
    by_cause = summed_by(s.gap * each + s.cause, s.end - s.start, n * each).reshape(n, each)
    first, last = _steps(gaps.start, gaps.end, spans)
    event, host = gaps.event, timeline.host
    return {
        "device": np.full(n, timeline.device_keys[device], object),
        "start_ns": gaps.start,
        "dur_ns": gaps.end - gaps.start,
        "cause": np.array(CAUSES, object)[by_cause.argmax(axis=1)],
        **{f"{cause}_ns": by_cause[:, i] for i, cause in enumerate(CAUSES)},
        "first_step": first,
        "last_step": last,
        **_explained(timeline, s, n),
        "ended_by": _names(timeline, values_at(timeline.gpu.name, event, -1)),
        "op": _names(timeline, values_at(host.name, values_at(links.op, event, -1), -1)),
    }


def _explained(timeline: Timeline, s: Stretches, n: int) -> Columns:
    """What explains the longest stretch of each gap, of several the first."""
    longest = np.lexsort((-s.start, s.end - s.start, s.gap))[np.cumsum(np.bincount(s.gap, minlength=n)) - 1]
    frame, around = s.frame[longest], s.around[longest]
    pairs = list(zip(frame.tolist(), around.tolist(), strict=True))
    texts = {pair: frame_text(timeline, *pair) or "" for pair in set(pairs)}
    source = source_frames(timeline, s.thread[longest], s.start[longest], s.end[longest])
    return {
        "frame": np.array([texts[pair] for pair in pairs], object),
        "python": _names(timeline, values_at(timeline.host.name, source, -1)),
    }


def _names(timeline: Timeline, index: I64) -> NDArray[Any]:
    named: NDArray[Any] = np.array([*timeline.names, ""], object)[index]
    return named


def _steps(start: I64, end: I64, spans: Sequence[StepSpan]) -> tuple[I64, I64]:
    """The numbers of the first and the last step, by their start, that each gap reaches into."""
    steps = sorted(spans, key=lambda s: (s.start, s.end))
    if not steps:
        return np.full(start.size, -1, np.int64), np.full(start.size, -1, np.int64)
    begins, ends, number = (np.array([getattr(s, f) for s in steps], np.int64) for f in ("start", "end", "n"))
    first = np.searchsorted(np.maximum.accumulate(ends), start, side="right")
    last = np.searchsorted(begins, end) - 1
    # A step inside another may be over before the gap begins, which the one around it is not.
    last = np.where((last >= 0) & (ends[last] <= start), first, last)
    inside = (first < number.size) & (first <= last)
    number = np.append(number, -1)
    return number[np.where(inside, first, -1)], number[np.where(inside, last, -1)]
