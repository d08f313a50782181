"""Why a device stands idle: the cause of every gap between its GPU events (DEFINITIONS §16, 4).

A gap is a maximal interval without GPU work on the device.  Its causes are found over the whole
recording, as disjoint sets of instants, and cut at step borders only afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.intervals import EMPTY, Set, cut, difference, intersection, parted, union, union_of
from rooflight.attribution.launches import Links
from rooflight.attribution.nesting import Spans, innermost
from rooflight.attribution.steps import StepSpan
from rooflight.trace.tables import I64, HostKind, Mask, distinct, rows_by, values_at
from rooflight.trace.timeline import Timeline

INPUT, SYNC, DISPATCH, HOST = "input", "sync", "dispatch", "host"
LAUNCH, DEPENDENCY, UNKNOWN_IDLE = "launch", "dependency", "unknown_idle"
CAUSES = (INPUT, SYNC, DISPATCH, HOST, LAUNCH, DEPENDENCY, UNKNOWN_IDLE)

#: The device's own gap between two kernels that were both queued is shorter than this.
QUEUED_GAP_NS = 5_000
#: Waiting for the next batch: whole names, or prefixes where they end in ``#``; never a substring.
INPUT_NAMES = (
    "enumerate(DataLoader)#",
    "DataLoader.__next__",
    "## wait_for_batch ##",
    "## load_batch ##",
)
_COPY_CALLS = frozenset({"cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream"})
_SYNC_NAMES = _COPY_CALLS | {"aten::item", "aten::_local_scalar_dense"}
_SYNC_CALL = re.compile(r"(cuda|hip|cu)(Stream|Device|Event|Ctx)Synchronize")
_STEP = re.compile(r"ProfilerStep#\d+")
_FOREVER = 1 << 62
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Waits:
    """Disjoint sets of instants of one host thread: in ``input``, else ``sync``, else ``dispatch``."""

    input: Set
    sync: Set
    dispatch: Set


class HostActivity:
    """What each host thread was doing, worked out when it is asked for."""

    def __init__(self, timeline: Timeline, input_names: Sequence[str] = INPUT_NAMES) -> None:
        self._timeline = timeline
        names = timeline.names
        kind, name = timeline.host.kind, timeline.host.name
        self._input = _named(names, lambda n: is_input(n, input_names))[name]
        self._sync = _named(names, is_sync)[name]
        self._dispatch: Mask = (kind != HostKind.PYTHON) & ~named_step(timeline, slice(None))
        self._rows = dict(rows_by(timeline.host.thread))
        self._known: dict[int, Waits] = {}

    def of(self, thread: int) -> Waits:
        """The waits of a thread (an index of ``timeline.threads``)."""
        if thread not in self._known:
            here = self._rows.get(thread, _NO_ROWS)
            fed = self._union(here[self._input[here]])
            synced = difference(self._union(here[self._sync[here]]), fed)
            called = self._union(here[self._dispatch[here]])
            self._known[thread] = Waits(fed, synced, difference(difference(called, fed), synced))
        return self._known[thread]

    def _union(self, rows: I64) -> Set:
        host = self._timeline.host
        return union(host.start[rows], host.end[rows])


@dataclass(frozen=True, slots=True)
class Read:
    """Disjoint instants of one cause, and the thread whose doings told it: -1 where none was asked, since
    the event that ended the gap tells it."""

    cause: str
    thread: int
    instants: Set


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of a device that GPU work ends, and the event that ends each: a row of ``timeline.gpu``.
    ``launch`` is -1 when it has none; before the first event a gap has no start."""

    start: I64
    end: I64
    event: I64
    launch_start: I64
    launch_end: I64
    launch: I64
    thread: I64
    blocking: Mask


@dataclass(frozen=True, slots=True)
class Idle:
    """The idle time of a device: ``causes`` are disjoint, together the window less its work; ``reads`` are
    the same instants by what told their cause.  ``after`` is the end of the last work, if any."""

    causes: dict[str, Set]
    after: int | None
    gaps: Gaps
    reads: tuple[Read, ...]


def idle_causes(
    timeline: Timeline,
    links: Links,
    rows: I64,
    busy: Set,
    window: tuple[int, int],
    steps: Sequence[StepSpan],
    activity: HostActivity,
) -> Idle:
    """Why the device was idle, at each instant of the window that is not ``busy``.

    ``rows`` are the valid GPU events of the device, ``busy`` their union, ``window`` the recording.
    """
    gaps = _gaps(timeline, links, rows, busy)
    reads: list[Read] = []
    unlinked = gaps.launch < 0
    queued = ~unlinked & (gaps.launch_start < gaps.start)
    short = gaps.end - gaps.start < QUEUED_GAP_NS
    reads.append(Read(UNKNOWN_IDLE, -1, _intervals(gaps, unlinked)))
    reads.append(Read(LAUNCH, -1, _intervals(gaps, queued & short)))
    reads.append(Read(DEPENDENCY, -1, _intervals(gaps, queued & ~short)))
    late = ~unlinked & ~queued
    reads += _split_launch(gaps, late)
    waiting = np.minimum(gaps.launch_start, gaps.end)
    lately = np.flatnonzero(late)
    rest = []
    for thread, at in rows_by(gaps.thread[lately]):
        mine = lately[at]
        before = union(np.maximum(gaps.start[mine], window[0]), waiting[mine])
        rest.append(_take(before, thread, activity, reads))
    trailing = busy[-1, 1] if busy.size else window[0]
    if trailing < window[1]:
        rest.append(np.array([[trailing, window[1]]], np.int64))
    _split_home(union_of(*rest), activity, _home(timeline, links, rows, steps), reads)
    inside = tuple(Read(r.cause, r.thread, _within(r.instants, window)) for r in reads if r.instants.size)
    return Idle(_by_cause(inside), int(busy[-1, 1]) if busy.size else None, gaps, inside)


def _within(s: Set, window: tuple[int, int]) -> Set:
    if s[0, 0] >= window[0] and s[-1, 1] <= window[1]:
        return s
    return intersection(s, np.array([window], np.int64))


def _by_cause(reads: Sequence[Read]) -> dict[str, Set]:
    return {cause: union_of(EMPTY, *(r.instants for r in reads if r.cause == cause)) for cause in CAUSES}


def _gaps(timeline: Timeline, links: Links, rows: I64, busy: Set) -> Gaps:
    """Each gap ends where a GPU event starts; of several, that of the earliest launch counts, and of one
    launch a kernel before a copy: it is what the launch was for."""
    gpu, host = timeline.gpu, timeline.host
    rows = rows[gpu.end[rows] > gpu.start[rows]]
    launch = links.launch[rows]
    at = values_at(host.start, launch, _FOREVER)
    pageable = _named(timeline.names, lambda n: n.startswith("Memcpy") and "Pageable" in n)
    kinds = (pageable[gpu.name[rows]], gpu.kind[rows])
    rows = rows[np.lexsort((*kinds, gpu.correlation[rows], at, gpu.start[rows]))]
    first = rows[np.searchsorted(gpu.start[rows], busy[:, 0])] if busy.size else rows
    launch = links.launch[first]
    api = values_at(host.name, launch, -1)
    copies = _named(timeline.names, lambda n: n in _COPY_CALLS)
    # Before its first event the device had been idle for longer than the recording tells.
    starts = np.concatenate(([-_FOREVER], busy[:-1, 1])) if busy.size else busy[:, 1]
    return Gaps(
        start=starts,
        end=busy[:, 0],
        event=first,
        launch_start=values_at(host.start, launch, 0),
        launch_end=values_at(host.end, launch, 0),
        launch=launch,
        thread=values_at(host.thread, launch, -1),
        blocking=(launch >= 0) & (copies[api] | pageable[gpu.name[first]]),
    )


def _split_launch(gaps: Gaps, late: Mask) -> list[Read]:
    """From the launch to the start: waiting for a blocking copy while its call is open, else launching."""
    begin = np.maximum(gaps.start, np.minimum(gaps.launch_start, gaps.end))
    open_until = np.where(gaps.blocking, np.clip(gaps.launch_end, begin, gaps.end), begin)
    return [
        Read(SYNC, -1, union(begin[late], open_until[late])),
        Read(LAUNCH, -1, union(open_until[late], gaps.end[late])),
    ]


def _split_home(idle: Set, activity: HostActivity, home: _Home, reads: list[Read]) -> None:
    """Where nothing is open on the launching thread: what the step's thread does."""
    pieces, at = cut(idle, home.start, home.end)
    for thread, of_thread in rows_by(home.thread[at]):
        mine = pieces[of_thread]
        reads.append(Read(HOST, thread, mine if thread < 0 else _take(mine, thread, activity, reads)))


def _take(idle: Set, thread: int, activity: HostActivity, reads: list[Read]) -> Set:
    """What the doings of a thread explain goes to ``reads``, the rest is given back."""
    waits = activity.of(thread)
    for cause, when in ((INPUT, waits.input), (SYNC, waits.sync), (DISPATCH, waits.dispatch)):
        explained, idle = parted(idle, when)
        reads.append(Read(cause, thread, explained))
    return idle


@dataclass(frozen=True, slots=True)
class _Home:
    """Disjoint intervals, together all instants, and the thread whose doings count in each; -1 is none."""

    start: I64
    end: I64
    thread: I64


def _home(timeline: Timeline, links: Links, rows: I64, steps: Sequence[StepSpan]) -> _Home:
    """The thread of the step at each instant, of several steps that of the innermost.

    Between steps it is the thread of most steps; without steps, the thread of most launches.
    """
    start, end, thread = (
        np.array([getattr(s, f) for s in steps], np.int64) for f in ("start", "end", "thread")
    )
    if not steps:
        launch = links.launch[rows]
        thread = timeline.host.thread[launch[launch >= 0]].astype(np.int64)
    bounds = np.concatenate(([-_FOREVER], distinct(np.concatenate((start, end))), [_FOREVER]))
    one = np.zeros(start.size, np.int64)
    inside = innermost(Spans(one, start, end), np.zeros(bounds.size - 1, np.int64), bounds[:-1])
    return _Home(bounds[:-1], bounds[1:], values_at(thread, inside, _most(thread)))


def _most(values: I64) -> int:
    if values.size == 0:
        return -1
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])


def _intervals(gaps: Gaps, which: Mask) -> Set:
    return union(gaps.start[which], gaps.end[which])


def named_step(timeline: Timeline, rows: I64 | slice) -> Mask:
    """Which rows of the host are named as steps, on whatever thread."""
    steps = _named(timeline.names, lambda n: n.startswith("ProfilerStep#") and bool(_STEP.fullmatch(n)))
    mask: Mask = steps[timeline.host.name[rows]]
    return mask


def is_input(name: str, wanted: Sequence[str] = INPUT_NAMES) -> bool:
    """Whether a host row of this name waits for the next batch."""
    return any(name == w or (w.endswith("#") and name.startswith(w)) for w in wanted)


def is_sync(name: str) -> bool:
    """Whether a host row of this name waits for the device."""
    return name in _SYNC_NAMES or bool(_SYNC_CALL.match(name))


def _named(names: Sequence[str], wanted: Callable[[str], bool]) -> Mask:
    # One false row more, so that index -1 (no launch) answers false.
    return np.array([*(wanted(n) for n in names), False], bool)
