"""Streams through memory that no cache holds: the bandwidth ceiling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.device import Device, import_torch, last_level_cache_bytes
from agent.measure.rates import Rate
from agent.measure.timing import repeat

MIB = 1024**2
#: Arrays of at least four times the last-level cache, so that at most a quarter can be found there.
CACHE_FACTOR = 4
CPU_LEAST, CPU_MOST = 64 * MIB, 1024 * MIB
GPU_ARRAY = 1024 * MIB
PINNED = 256 * MIB


def streams(device: Device, budget_s: float) -> dict[str, Rate]:
    """Rates of ``triad`` (two arrays read, one written), ``copy`` (one and one) and ``read``, in B/s.

    Each array counts once per pass; what a CPU reads to fill the lines that it writes does not count,
    as in the STREAM benchmark.
    """
    torch = import_torch()
    count = array_bytes(device) // 4
    a, b, c = (torch.full((count,), 1.0 + i, device=device.place, dtype=torch.float32) for i in range(3))
    passes = {
        "triad": (3, lambda: torch.add(b, c, alpha=3.0, out=a)),
        "copy": (2, lambda: a.copy_(b)),
        "read": (1, lambda: b.sum()),
    }
    wait = torch.cuda.synchronize if device.is_gpu else lambda: None
    size = f"arrays of {count * 4 // MIB} MiB"
    rates = {}
    for name, (arrays, work) in passes.items():
        timing = repeat(work, wait, budget_s / len(passes))
        rates[name] = Rate(arrays * count * 4 / timing.seconds, timing.spread, f"{size}, {timing.estimator}")
    return rates


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
