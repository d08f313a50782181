"""Streams through memory that no cache holds: the bandwidth ceiling."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from agent.device import Device, import_torch, last_level_cache_bytes
from agent.measure.rates import Rate
from agent.measure.threads import one_thread
from agent.measure.timing import CPU_SAMPLE_S, repeat

MIB = 1024**2
#: Arrays of at least four times the last-level cache, so that at most a quarter can be found there.
CACHE_FACTOR = 4
CPU_LEAST, CPU_MOST = 64 * MIB, 1024 * MIB
GPU_ARRAY = 1024 * MIB
PINNED = 256 * MIB
#: Parts of an array for short passes; arrays are whole multiples of this many elements.
PARTS = 8

#: Works on three arrays, or on a part of each.
Pass = Callable[[Any, Any, Any], object]


def streams(device: Device, budget_s: float) -> dict[str, Rate]:
    """Rates of ``triad`` (two arrays read, one written), ``copy`` (one and one) and ``read``, in B/s.

    Each array counts once per pass; what a CPU reads to fill the lines that it writes does not count,
    as in the STREAM benchmark.
    """
    torch = import_torch()
    count = array_bytes(device) // 4
    arrays = [torch.full((count,), 1.0 + i, device=device.place, dtype=torch.float32) for i in range(3)]
    passes: dict[str, tuple[int, Pass]] = {
        "triad": (3, lambda a, b, c: torch.add(b, c, alpha=3.0, out=a)),
        "copy": (2, lambda a, b, _: a.copy_(b)),
        "read": (1, lambda _, b, __: b.sum()),
    }
    budget_s /= len(passes)
    return {name: _stream(torch, device, work, n, arrays, budget_s) for name, (n, work) in passes.items()}


def _stream(
    torch: Any, device: Device, work: Pass, counted: int, arrays: Sequence[Any], budget_s: float
) -> Rate:
    """One pass over the whole of ``arrays``, ``counted`` of which count.  Where other programs use the
    CPUs no long pass is ever left alone: then the better of that and of short passes over their parts."""
    size = arrays[0].nbytes
    wait = torch.cuda.synchronize if device.is_gpu else lambda: None
    whole = repeat(lambda: work(*arrays), wait, budget_s / 2)
    what = f"arrays of {size // MIB} MiB, {whole.estimator}"
    found = Rate(counted * size / whole.seconds, whole.spread, what)
    if device.is_gpu or not whole.disturbed:
        return found
    return max(found, *_short_passes(torch, work, counted, arrays, budget_s / 4), key=lambda r: r.per_s)


def _short_passes(
    torch: Any, work: Pass, counted: int, arrays: Sequence[Any], budget_s: float
) -> Iterator[Rate]:
    """Passes over a part of ``arrays`` each, on all threads and on one."""
    size = arrays[0].nbytes
    for threads, limit in (("", nullcontext()), (", one thread", one_thread(torch))):
        with limit:
            timing = repeat(in_turn(work, arrays), lambda: None, budget_s, CPU_SAMPLE_S)
        what = f"arrays of {size // MIB} MiB in {PARTS} parts{threads}, {timing.estimator}"
        yield Rate(counted * size / PARTS / timing.seconds, timing.spread, what)


def in_turn(work: Pass, arrays: Sequence[Any]) -> Callable[[], object]:
    """``work`` on the next of :data:`PARTS` parts at each call: until one comes round again, the others
    have driven it from the caches."""
    length = -(-len(arrays[0]) // PARTS)
    parts = itertools.cycle(list(zip(*(array.split(length) for array in arrays), strict=True)))
    return lambda: work(*next(parts))


def host_copy(device: Device, budget_s: float) -> Rate | None:
    """Pinned host memory to the device, bytes counted once, in B/s; ``None`` for a CPU."""
    if not device.is_gpu:
        return None
    torch = import_torch()
    source = torch.empty(PINNED, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(PINNED, dtype=torch.uint8, device=device.place)
    timing = repeat(lambda: target.copy_(source, non_blocking=True), torch.cuda.synchronize, budget_s)
    what = f"{PINNED // MIB} MiB, pinned host to device, {timing.estimator}"
    return Rate(PINNED / timing.seconds, timing.spread, what)


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
