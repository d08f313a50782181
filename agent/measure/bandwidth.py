"""Streams through memory that no cache holds: the bandwidth ceiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.device import Device, import_torch, last_level_cache_bytes
from agent.measure.rates import Rate, best, rate
from agent.measure.threads import one_thread
from agent.measure.timing import Tally, Watch, Work

MIB = 1024**2
#: Arrays of at least four times the last-level cache, so that at most a quarter can be found there.
CACHE_FACTOR = 4
CPU_LEAST, CPU_MOST = 64 * MIB, 1024 * MIB
GPU_ARRAY = 1024 * MIB
#: Parts of an array for short passes; arrays are whole multiples of this many elements.
PARTS = 8
#: Parts that are not counted after a rest: what they write fills a cache of a quarter of an array.
SETTLE = 2
#: Seconds of a turn.
TURN_S = 0.02

#: Works on three arrays, or on a part of each.
Pass = Callable[[Any, Any, Any], object]


def _passes(torch: Any) -> Mapping[str, tuple[int, Pass]]:
    """Work by name, and how many of the arrays it counts.

    Each array counts once per pass; what a CPU reads to fill the lines that it writes does not count,
    as in the STREAM benchmark.
    """
    return {
        "triad": (3, lambda a, b, c: torch.add(b, c, alpha=3.0, out=a)),
        "copy": (2, lambda a, b, _: a.copy_(b)),
        "read": (1, lambda _, b, __: b.sum()),
    }


class Turns:
    """Passes over the arrays or the next of :data:`PARTS` parts of them.  The part is always the one that
    was touched longest ago, whichever pass it was: the others have driven it from the caches since."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        length = -(-len(arrays[0]) // PARTS)
        self._arrays = arrays
        self._parts = list(zip(*(array.split(length) for array in arrays), strict=True))
        self._next = 0

    def whole(self, work: Pass) -> object:
        self._next = 0
        return work(*self._arrays)

    def part(self, work: Pass) -> object:
        part = self._parts[self._next]
        self._next = (self._next + 1) % len(self._parts)
        return work(*part)


@dataclass(slots=True)
class Way:
    """One way to stream: over whole arrays, or over parts of them in turn (``short``), on one thread if
    ``alone``."""

    name: str
    moved: int
    work: Work
    what: str
    short: bool = False
    alone: bool = False
    tally: Tally = field(default_factory=Tally)


class Streams:
    """``triad`` (two arrays read, one written), ``copy`` (one and one) and ``read``, in turns."""

    def __init__(self, device: Device, watch: Watch) -> None:
        self._watch = watch
        self._torch = import_torch()
        size = array_bytes(device)
        self._arrays = [
            self._torch.full((size // 4,), 1.0 + i, device=device.place, dtype=self._torch.float32)
            for i in range(3)
        ]
        self._turns = Turns(self._arrays)
        self._ways = [self._whole(name) for name in _passes(self._torch)]
        if not device.is_gpu:
            self._ways += [self._parts(name) for name in _passes(self._torch)]

    def measure(self, budget_s: float) -> None:
        """Turns for about ``budget_s`` seconds, one of each way at the least."""
        deadline = time.perf_counter() + budget_s
        while True:
            for way in self._going():
                with one_thread(self._torch) if way.alone else nullcontext():
                    self._watch.turn(way.work, way.tally, TURN_S)
            self._widen()
            if time.perf_counter() >= deadline:
                return

    def rates(self) -> dict[str, Rate]:
        """The best of each stream's ways, in B/s."""
        found = {way.name: self._best(way.name) for way in self._ways}
        return {name: rate for name, rate in found.items() if rate is not None}

    def _best(self, name: str) -> Rate | None:
        ways = [way for way in self._ways if way.name == name and way.tally.calls]
        return best(rate(way.moved, way.what, self._watch.timing(way.tally)) for way in ways)

    def _going(self) -> list[Way]:
        """The ways that get a turn; on a busy machine no pass over whole arrays is left alone."""
        return [way for way in self._ways if way.short or not way.tally.calls or not self._busy()]

    def _busy(self) -> bool:
        """Whether others disturbed most samples."""
        disturbed = sum(len(way.tally.disturbed) for way in self._ways)
        return disturbed > sum(len(way.tally.quiet) for way in self._ways)

    def _widen(self) -> None:
        """On a busy machine one thread is tried too: it waits for no other thread."""
        if self._busy() and not any(way.alone for way in self._ways):
            self._ways += [self._parts(name, alone=True) for name in _passes(self._torch)]

    def _whole(self, name: str) -> Way:
        counted, work = _passes(self._torch)[name]
        size = self._arrays[0].nbytes
        return Way(name, counted * size, lambda: self._turns.whole(work), f"arrays of {size // MIB} MiB")

    def _parts(self, name: str, *, alone: bool = False) -> Way:
        """No long pass is ever left alone on a busy machine; one over a part of the arrays may be."""
        counted, work = _passes(self._torch)[name]
        size = self._arrays[0].nbytes
        what = f"arrays of {size // MIB} MiB in {PARTS} parts{', one thread' if alone else ''}"
        moved, tally = counted * size // PARTS, Tally(settle=SETTLE)
        return Way(name, moved, lambda: self._turns.part(work), what, True, alone, tally)


def array_bytes(device: Device) -> int:
    """Size of one stream array: past the caches, at most a sixteenth of the memory that is free."""
    if device.is_gpu:
        free, _ = import_torch().cuda.mem_get_info()
        return _whole(min(GPU_ARRAY, free // 16))
    wanted = min(max(CPU_LEAST, CACHE_FACTOR * (last_level_cache_bytes() or 0)), CPU_MOST)
    return _whole(min(wanted, _available_bytes() // 16))


def _whole(size: Any) -> int:
    return max(MIB, int(size) // MIB * MIB)


def _available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 16 * CPU_LEAST
