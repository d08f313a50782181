"""The energy of a program's steps: which device its processes ran on is the driver's word."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import agent.capture.energy as module
from agent.capture.energy import Recorded, add_energy
from agent.capture.folder import Manifest
from agent.capture.folder import Recorded as Row
from agent.sampler.sample import DeviceSample, Process
from agent.sampler.thread import Sampling
from rooflight.protocol import DeviceFigures, Document, Rank, Step


class Devices:
    """Two devices of 100 W and 300 W; pid 11 is on the first, 12 on the second, 13 on both, 14 in a MIG
    instance, 15 of another namespace, 16 was given to a second process meanwhile."""

    looks = 0

    def sample(self, t: float) -> list[DeviceSample]:
        self.looks += 1
        first, second = (DeviceSample(f"GPU-{i}", t, i, power_w=w) for i, w in ((0, 100.0), (1, 300.0)))
        first.processes = [
            Process(11, "a", started=1.0),
            Process(13, "c", started=1.0),
            Process(14, "d", started=1.0, gpu_instance_id=3),
            Process(15, None),
            Process(16, "f", started=float(self.looks > 1)),
        ]
        second.processes = [Process(12, "b", started=1.0), Process(13, "c", started=1.0)]
        return [first, second]

    def close(self) -> None:
        """Nothing is held."""


def a_rank(n: int, began_ns: int, us: float, *worked: str) -> Rank:
    rank = Rank(rank=n, grade="complete", clock_base_ns=str(began_ns))
    rank.steps = [Step(n=0, step_time_us=us, start_us=0.0)]
    for key in worked:
        rank.devices[key] = DeviceFigures(None, 5, 5, *[0.0] * 3, None, *[0.0] * 5, None, 0.0, 0, 0.0)
    return rank


def test_each_rank_has_the_energy_of_the_device_that_its_process_was_on() -> None:
    with Sampling(interval_s=0.02, source=Devices()) as sampling:
        time.sleep(0.05)
        began = time.time_ns()
        time.sleep(0.3)
        us = (time.time_ns() - began) / 1000
        time.sleep(0.05)
    # Both call their only device 0, as each of several ranks does that sees one.
    document = Document(1, "x", [a_rank(n, began, us, "0") for n in range(6)])
    document.ranks.append(a_rank(6, began, us, "0", "1"))
    pids = [11, 12, 13, 14, 15, 16, 11]
    add_energy(document, Manifest([Row(f"{n}.json", pid, n) for n, pid in enumerate(pids)]), sampling)
    energies = [rank.energy for rank in document.ranks]
    assert [e.uuid if e else None for e in energies] == ["GPU-0", "GPU-1", *[None] * 5]
    assert [e.power_w for e in energies if e] == [pytest.approx(100), pytest.approx(300)]
    assert [e.energy_j for e in energies if e] == [pytest.approx(w * us / 1e6) for w in (100, 300)]
    assert document.telemetry is not None
    assert (document.telemetry["device_uuid"], document.telemetry["flags"]) == ("GPU-0", [])


def test_a_program_that_the_driver_does_not_know_has_no_energy() -> None:
    with Sampling(interval_s=60, source=Devices()) as sampling:
        pass
    document = Document(1, "x", [a_rank(0, time.time_ns(), 1.0, "0")])
    add_energy(document, Manifest([Row("0.json", 99, 0)]), sampling)
    assert document.ranks[0].energy is None
    assert document.telemetry is not None
    assert [f["code"] for f in document.telemetry["flags"]] == ["device_unmatched"]


def test_sampling_ends_a_while_after_the_first_process_has_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LATER_S", 0.05)
    recorded = Recorded(tmp_path)
    assert not recorded()
    (tmp_path / "11.notes.json").write_text("{}")
    assert not recorded()
    time.sleep(0.1)
    assert recorded()
    devices = Devices()
    with Sampling(interval_s=0.01, source=devices, enough=recorded):
        time.sleep(0.3)
    assert devices.looks == 2
