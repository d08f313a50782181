"""What a GPU moves over its links: to and from the host, and to the other GPUs of the host.

Host memory is pinned, since the driver moves the rest through a buffer of its own first.  Every rate
counts the bytes once, in one direction, with nothing going the other way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.device import Device, gpu_uuid, import_torch
from agent.measure.rates import Rate, rate
from agent.measure.timing import GPU_SAMPLE_S, Tally, Watch

MIB = 1024**2
#: A copy of this size takes milliseconds on the fastest link, so that starting it does not weigh.
SIZE = 256 * MIB
NO_LINK = "not applicable: a CPU works in the host's own memory"
ONE_GPU = "not applicable: torch sees one GPU"


@dataclass(frozen=True, slots=True)
class Links:
    """Rates in B/s: ``host`` by direction (``h2d``, ``d2h``), ``peers`` by UUID of the GPU that is
    written to; ``absent`` says in words what was not measured, and why."""

    host: dict[str, Rate] = field(default_factory=dict)
    peers: dict[str, Rate] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def links(device: Device, budget_s: float) -> Links:
    """The links of a device; half of ``budget_s`` is for the host, half for the peers."""
    if not device.is_gpu:
        return Links(absent={"link": NO_LINK, "p2p": NO_LINK})
    torch = import_torch()
    host = _host(torch, device, budget_s / 4)
    others = [i for i in range(torch.cuda.device_count()) if i != device.index]
    if not others:
        return Links(host, absent={"p2p": ONE_GPU})
    reached = [i for i in others if torch.cuda.can_device_access_peer(device.index, i)]
    absent = {f"p2p to {_name(torch, i)}": "no direct access" for i in others if i not in reached}
    peers = {_name(torch, i): _peer(torch, device, i, budget_s / 2 / len(reached)) for i in reached}
    return Links(host, peers, absent)


def _host(torch: Any, device: Device, budget_s: float) -> dict[str, Rate]:
    there = torch.empty(SIZE, dtype=torch.uint8, device=device.place)
    here = torch.empty(SIZE, dtype=torch.uint8, pin_memory=True)
    watch = Watch(torch.cuda.synchronize, GPU_SAMPLE_S, steady=True)
    return {
        "h2d": copied(watch, there, here, budget_s, "pinned host to device"),
        "d2h": copied(watch, here, there, budget_s, "device to pinned host"),
    }


def _peer(torch: Any, device: Device, peer: int, budget_s: float) -> Rate:
    source = torch.empty(SIZE, dtype=torch.uint8, device=device.place)
    target = torch.empty(SIZE, dtype=torch.uint8, device=f"cuda:{peer}")
    watch = Watch(_both(torch, device.index, peer), GPU_SAMPLE_S, steady=True)
    return copied(watch, target, source, budget_s, f"{device.place} to cuda:{peer}, one way")


def copied(watch: Watch, target: Any, source: Any, budget_s: float, what: str) -> Rate:
    """Bytes per second of ``target.copy_(source)``."""
    tally = Tally()
    watch.turn(lambda: target.copy_(source, non_blocking=True), tally, budget_s)
    size = int(source.nbytes)
    return rate(size, f"{size // MIB} MiB, {what}", watch.timing(tally))


def _both(torch: Any, *devices: int | None) -> Callable[[], object]:
    return lambda: [torch.cuda.synchronize(device) for device in devices]


def _name(torch: Any, index: int) -> str:
    return gpu_uuid(torch.cuda.get_device_properties(index)) or f"cuda:{index}"
