"""Where a device waited and for what: idle time by cause and by what was open on the host meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rooflight.attribution.frames import source_frames
from rooflight.attribution.idle import CAUSES
from rooflight.attribution.steps import StepSpan
from rooflight.protocol import Idle
from rooflight.results.exclusive import Depth
from rooflight.results.steps import bounds
from rooflight.results.stretches import Stretches
from rooflight.trace.tables import I64, Mask, combined, in_order
from rooflight.trace.timeline import Timeline
from rooflight.units import us

#: So many rows are named, the longest; what is left of each cause is one row more.
MAX_ROWS = 40
MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class _Groups:
    """Idle time of one device by (cause, frame): ``longest`` is a place in its stretches, ``longest_ns``
    what is counted of it, ``shown`` whether the group has a row of its own."""

    cause: I64
    time_ns: I64
    count: I64
    longest: I64
    longest_ns: I64
    start: I64
    shown: Mask


def idle_rows(
    timeline: Timeline, of_device: Mapping[int, Stretches], spans: Sequence[StepSpan]
) -> list[Idle]:
    """The rows of all devices, longest first, then what is left of each cause.

    Counted is the time within the steps, an instant of two steps in each, and without steps all of it: the
    rows of a cause add up to its part of the steps, or of the recording.
    """
    groups = {d: _grouped(s, _counted(s, spans)) for d, s in of_device.items()}
    groups = _longest(groups)
    rows = [row for d, g in groups.items() for row in _named(timeline, d, of_device[d], g, spans)]
    rest = [row for d, g in groups.items() for row in _rest(timeline.device_keys[d], g)]
    return [*sorted(rows, key=lambda r: (-r.time_us, r.device, r.cause, r.frame or "")), *rest]


def _longest(groups: Mapping[int, _Groups]) -> dict[int, _Groups]:
    """The groups, with those that are to be shown; of equal ones what began first."""
    time, start = (
        np.concatenate([np.empty(0, np.int64), *(getattr(g, column) for g in groups.values())])
        for column in ("time_ns", "start")
    )
    shown = np.zeros(time.size, bool)
    shown[np.lexsort((start, -time))[:MAX_ROWS]] = True
    parts = np.split(shown, np.cumsum([g.time_ns.size for g in groups.values()]))
    return {d: replace(g, shown=part) for (d, g), part in zip(groups.items(), parts, strict=False)}


def _counted(s: Stretches, spans: Sequence[StepSpan]) -> I64:
    return Depth(*bounds(spans)).within(s.start, s.end) if spans else s.end - s.start


def _grouped(s: Stretches, counted: I64) -> _Groups:
    at = np.flatnonzero(counted > 0)
    key = combined(s.cause[at], s.frame[at], s.around[at])
    # Stretches are in order of their start: within a group they stay so.
    order = in_order(key)
    key, at = key[order], at[order]
    first = np.flatnonzero(np.append(np.ones(min(1, key.size), bool), key[1:] != key[:-1]))
    sizes = np.diff(np.append(first, key.size))
    counted, gap = counted[at], s.gap[at]
    new = np.append(np.ones(min(1, gap.size), bool), gap[1:] != gap[:-1])
    new[first] = True
    longest_ns = _in_runs(np.maximum, counted, first)
    longest = at[_first_in_runs(counted == np.repeat(longest_ns, sizes), first)]
    return _Groups(
        cause=s.cause[longest],
        time_ns=_in_runs(np.add, counted, first),
        count=_in_runs(np.add, new.astype(np.int64), first),
        longest=longest,
        longest_ns=longest_ns,
        start=s.start[longest],
        shown=np.ones(first.size, bool),
    )


def _in_runs(by: np.ufunc, values: I64, first: I64) -> I64:
    """The values of each run, which begin at ``first``, put together."""
    return by.reduceat(values, first) if first.size else values[:0]


def _first_in_runs(wanted: Mask, first: I64) -> I64:
    """The place of the first wanted entry of each run; every run has one."""
    places = np.flatnonzero(wanted)
    return places[np.searchsorted(places, first)]


def _named(
    timeline: Timeline, device: int, s: Stretches, g: _Groups, spans: Sequence[StepSpan]
) -> Iterator[Idle]:
    shown = np.flatnonzero(g.shown)
    at = g.longest[shown]
    stack = source_frames(timeline, s.thread[at], s.start[at], s.end[at]).tolist()
    for i, longest, python in zip(shown.tolist(), at.tolist(), stack, strict=True):
        start, end = int(s.start[longest]), int(s.end[longest])
        yield Idle(
            device=timeline.device_keys[device],
            cause=CAUSES[g.cause[i]],
            frame=frame_text(timeline, int(s.frame[longest]), int(s.around[longest])),
            python=None if python < 0 else _text(timeline, int(timeline.host.name[python])),
            count=int(g.count[i]),
            time_us=us(int(g.time_ns[i])),
            longest_us=us(int(g.longest_ns[i])),
            longest_start_us=us(start),
            step=next((p.n for p in spans if p.start < end and start < p.end), None),
        )


def _rest(device: str, g: _Groups) -> Iterator[Idle]:
    for c, cause in enumerate(CAUSES):
        at = np.flatnonzero((g.cause == c) & ~g.shown)
        if at.size:
            yield Idle(
                device=device,
                cause=cause,
                count=int(g.count[at].sum()),
                time_us=us(int(g.time_ns[at].sum())),
                longest_us=us(int(g.longest_ns[at].max())),
                rest=True,
            )


def frame_text(timeline: Timeline, frame: int, around: int) -> str | None:
    """What a stretch was spent in, in words; ``None`` where nothing was open."""
    if frame < 0:
        return None
    name = _text(timeline, frame)
    return name if around < 0 else f"{name} in {_text(timeline, around)}"


def _text(timeline: Timeline, name: int) -> str:
    text = timeline.names[name]
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
