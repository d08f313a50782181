"""Links of a GPU, on a stand-in for torch: which are measured, and which are said to be missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from agent.device import Device
from agent.measure import links as module
from agent.measure import timing
from agent.measure.links import MIB, links

GPU = Device("gpu", "cuda:0", "NVIDIA A10", "lab1", 8, "GPU-0", 0)
SIZE = 256 * MIB


@dataclass
class Torch:
    """As much of torch as links need: a copy takes ``seconds`` of its two places and is over when both
    devices were waited for."""

    seconds: dict[tuple[str, str], float]
    count: int = 1
    reached: set[int] = field(default_factory=set)
    now: float = 0.0
    uint8: str = "uint8"

    def __post_init__(self) -> None:
        self.cuda = SimpleNamespace(
            device_count=lambda: self.count,
            can_device_access_peer=lambda own, other: own == 0 and other in self.reached,
            get_device_properties=lambda i: SimpleNamespace(uuid=str(i)),
            synchronize=lambda _device=None: None,
        )

    def empty(self, size: int, *, dtype: str, device: str = "", pin_memory: bool = False) -> Any:
        assert (size, dtype) == (SIZE, "uint8")
        assert device or pin_memory, "pageable memory goes through a buffer of the driver's"
        return Memory(self, device or "host", size)

    def perf_counter(self) -> float:
        return self.now


@dataclass
class Memory:
    torch: Torch
    place: str
    nbytes: int

    def copy_(self, source: Memory, *, non_blocking: bool) -> None:
        assert non_blocking
        self.torch.now += self.torch.seconds[source.place, self.place]


def measured(monkeypatch: pytest.MonkeyPatch, torch: Torch) -> module.Links:
    monkeypatch.setattr(module, "import_torch", lambda: torch)
    monkeypatch.setattr(timing, "time", torch)
    return links(GPU, 1.0)


HOST = {("host", "cuda:0"): 5e-3, ("cuda:0", "host"): 10e-3}


def test_a_cpu_has_no_link() -> None:
    found = links(Device("cpu", "cpu", "EPYC", "vm", 2), 1.0)
    assert (found.host, found.peers) == ({}, {})
    assert all("not applicable" in why for why in found.absent.values())
    assert set(found.absent) == {"link", "p2p"}


def test_both_directions_count_the_bytes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 MiB in 5 ms to the device, in 10 ms back; the one GPU has no other to copy to."""
    found = measured(monkeypatch, Torch(HOST))
    assert found.host["h2d"].per_s == pytest.approx(268_435_456 / 5e-3)
    assert found.host["d2h"].per_s == pytest.approx(268_435_456 / 10e-3)
    assert found.host["h2d"].what.startswith("256 MiB, pinned host to device, median of")
    assert found.absent == {"p2p": "not applicable: torch sees one GPU"}


def test_each_peer_that_is_reached_has_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three GPUs the third cannot be accessed: it is told, not measured at 0."""
    torch = Torch(HOST | {("cuda:0", "cuda:1"): 2e-3}, count=3, reached={1})
    found = measured(monkeypatch, torch)
    assert {name: rate.per_s for name, rate in found.peers.items()} == pytest.approx({"GPU-1": SIZE / 2e-3})
    assert found.absent == {"p2p to GPU-2": "no direct access"}
