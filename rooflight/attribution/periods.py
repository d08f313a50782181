"""A loop that nobody marked, found by its launches, as of a server that decodes token after token.

An anchor is a kernel or a graph that is launched once in every round.  It counts as one when

- at least four in five of the windows between its launches hold the same kernels, each as often, three
  windows at least;
- what was launched before its first and after its last launch is no longer than a window and holds no
  other kernels: the rounds that the recording cut;
- four in five windows hold a copy from or to the host, or a wait for the device.  Layers of one pass are
  alike too, but only a round takes input in or brings results out.  A window that is one graph needs none.

Anything else is no loop that could be told from layers: the steps then stay unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rooflight.attribution.idle import is_sync
from rooflight.attribution.launches import Links
from rooflight.trace.tables import I64, GpuKind
from rooflight.trace.timeline import Timeline

#: Windows that have to be alike, at least, and their share in five.
MIN_WINDOWS = 3
ALIKE_IN_FIVE = 4
#: Most kernels of a round are anchors as good as any: where this many fail, all do.
MAX_TRIES = 64
#: Constants of splitmix64, which makes of a number one that adds up to no other by chance.
_STEP, _MIX1, _MIX2 = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
U64 = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Period:
    """Windows that are alike: their number in the sequence, the launch that begins each and the one that
    ends it, as rows of ``timeline.host``; ``anchor`` is a row of ``timeline.gpu``, ``launches`` how many
    a window has."""

    n: I64
    begin: I64
    end: I64
    anchor: int
    launches: int


def find_period(timeline: Timeline, links: Links) -> Period | None:
    """The loop that the launches of kernels repeat; ``None`` where none is certain."""
    sequence = _sequence(timeline, links)
    if sequence is None:
        return None
    tries = (sequence.period(symbol) for symbol in sequence.candidates()[:MAX_TRIES].tolist())
    return next((p for p in tries if p is not None), None)


@dataclass(frozen=True)
class _Sequence:
    """Launches in order of time: host row, what they launch as a sum that no other kernels have, the
    number of that sum among the distinct ones, how many kernels, and one of these.

    ``outside`` are the instants of copies from or to the host and of waits for the device, sorted.
    """

    row: I64
    at: I64
    content: U64
    symbol: I64
    kernels: I64
    sample: I64
    outside: I64

    @cached_property
    def _until(self) -> U64:
        """What was launched before each place, as a sum; it wraps around, and differences do too."""
        return np.concatenate((np.zeros(1, np.uint64), np.cumsum(self.content, dtype=np.uint64)))

    @cached_property
    def _places(self) -> list[I64]:
        """The places of each symbol in the sequence, in order."""
        order = np.argsort(self.symbol, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.symbol))[:-1])

    def candidates(self) -> I64:
        """The symbols whose windows are alike, the most alike first; then those of most windows, give or
        take the one that was cut; then those before which the host took longest, as between rounds."""
        order = np.argsort(self.symbol, kind="stable")
        mine, until = self.symbol[order], self._until[order]
        same = mine[1:] == mine[:-1]
        windows = np.stack((mine[1:][same].astype(np.uint64), (until[1:] - until[:-1])[same]))
        kinds, counts = np.unique(windows, axis=1, return_counts=True)
        size = int(self.symbol.max()) + 1
        alike = np.zeros(size, np.int64)
        np.maximum.at(alike, kinds[0].astype(np.int64), counts)
        number = np.bincount(self.symbol, minlength=size) - 1
        pause = np.bincount(self.symbol, np.diff(self.at, prepend=self.at[:1]), size)
        good = np.flatnonzero((alike >= MIN_WINDOWS) & (alike * 5 >= number * ALIKE_IN_FIVE))
        share = alike[good] / number[good]
        fewer = number[good] < number[good].max(initial=0) - 1
        return good[np.lexsort((-pause[good] / number[good], fewer, -share))]

    def period(self, symbol: int) -> Period | None:
        """The windows of an anchor, when they are rounds of a loop."""
        places = self._places[symbol]
        content = self._until[places[1:]] - self._until[places[:-1]]
        kinds, first, counts = np.unique(content, return_index=True, return_counts=True)
        best = int(counts.argmax())
        alike = np.flatnonzero(content == kinds[best])
        low, high = (int(places[first[best] + i]) for i in (0, 1))
        begin, end = places[alike], places[alike + 1]
        if not (self._ends_fit(low, high, places) and self._is_round(begin, end)):
            return None
        anchor = int(self.sample[places[0]])
        return Period(alike, self.row[begin], self.row[end], anchor, high - low)

    def _is_round(self, begin: I64, end: I64) -> bool:
        """Whether the windows between these places take input in or bring results out."""
        launches, kernels = int(end[0] - begin[0]), int(self.kernels[begin[0] : end[0]].sum())
        if kernels < 2 or launches == 1:
            return kernels > 1
        before = np.searchsorted(self.outside, self.at)
        return bool(np.count_nonzero(before[end] > before[begin]) * 5 >= begin.size * ALIKE_IN_FIVE)

    def _ends_fit(self, low: int, high: int, places: I64) -> bool:
        """Whether what comes before the first anchor and after the last are rounds that were cut."""
        head, tail = self.symbol[: places[0]], self.symbol[places[-1] :]
        if max(head.size, tail.size) > high - low:
            return False
        known = np.isin(np.concatenate((head, tail)), self.symbol[low:high])
        return bool(known.all())


def _sequence(timeline: Timeline, links: Links) -> _Sequence | None:
    gpu, host = timeline.gpu, timeline.host
    kernels = timeline.valid_gpu
    kernels = kernels[(gpu.kind[kernels] == GpuKind.KERNEL) & (links.launch[kernels] >= 0)]
    if kernels.size <= MIN_WINDOWS:
        return None
    kernels = kernels[np.lexsort((links.launch[kernels], host.start[links.launch[kernels]]))]
    launch = links.launch[kernels]
    first = np.flatnonzero(np.concatenate(([True], launch[1:] != launch[:-1])))
    content = np.add.reduceat(_mixed(gpu.name[kernels].astype(np.uint64)), first)
    return _Sequence(
        row=launch[first],
        at=host.start[launch[first]],
        content=content,
        symbol=np.unique(content, return_inverse=True)[1],
        kernels=np.diff(first, append=launch.size),
        sample=kernels[first],
        outside=np.sort(np.fromiter(_outside(timeline, links), np.int64)),
    )


def _outside(timeline: Timeline, links: Links) -> Iterator[int]:
    """Starts of the calls that copy from or to the host, or wait for the device."""
    gpu, host, names = timeline.gpu, timeline.host, timeline.names
    moves = np.array([n.startswith("Memcpy") and ("HtoD" in n or "DtoH" in n) for n in names], bool)
    copies = links.launch[moves[gpu.name] & (gpu.kind == GpuKind.MEMCPY)]
    waits = np.array([is_sync(n) for n in names], bool)[host.name]
    yield from host.start[copies[copies >= 0]].tolist()
    yield from host.start[waits].tolist()


def _mixed(number: U64) -> U64:
    """splitmix64 of each number."""
    z = (number + np.uint64(1)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    return z ^ (z >> np.uint64(31))
