"""Clocks while something is measured, and what kept them down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent.device import Device
from agent.measure import clocks as module
from agent.measure.clocks import POWER_CAP, SET_CLOCKS, SLOWDOWNS, Clocks, clock, cpu_mhz, reasons
from agent.sampler.sample import DeviceSample
from rooflight.calibration import Clock

GPU = Device("gpu", "cuda:0", "NVIDIA A10", "lab1", 8, "GPU-1", 0)


def test_unknown_clocks_are_no_zeros() -> None:
    """1000, 1500, 2000 are known: the median is 1500."""
    assert clock([2000.0, None, 1000.0, 1500.0]) == Clock(1000.0, 1500.0, 2000.0)
    assert clock([None]) is None


def test_bits_are_those_of_nvml() -> None:
    """The names of nvidia-ml-py, so that a bit of ours stands for what the driver means."""
    import pynvml

    slow = {"HwSlowdown", "SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown"}
    assert set(SLOWDOWNS) == {_bit(pynvml, name) for name in slow}
    assert set(POWER_CAP) == {_bit(pynvml, "SwPowerCap")}
    assert set(SET_CLOCKS) == {_bit(pynvml, name) for name in ("ApplicationsClocksSetting", "SyncBoost")}
    assert _bit(pynvml, "GpuIdle") == 1


def _bit(pynvml: object, name: str) -> int:
    return int(getattr(pynvml, f"nvmlClocksThrottleReason{name}"))


def test_reasons_of_all_samples_are_told_once() -> None:
    """0x24 is the power cap (0x4) and a thermal slowdown by the driver (0x20); 0x1 is idle."""
    assert reasons([0x1, None, 0x24, 0x20], SLOWDOWNS) == ["thermal slowdown by the driver"]
    assert reasons([0x1, None, 0x24, 0x20], POWER_CAP) == ["power cap"]
    assert reasons([None, 0], SLOWDOWNS) == []


class Driver:
    """Two devices of which the second is ours; its clock falls, and at last it idles."""

    def __init__(self) -> None:
        self.looks = 0
        self.closed = False

    def sample(self, t: float) -> list[DeviceSample]:
        mhz = (1980.0, 1410.0, 210.0)[min(self.looks, 2)]
        throttle = (0x0, 0x4, 0x1)[min(self.looks, 2)]
        self.looks += 1
        return [
            DeviceSample("GPU-0", t, sm_clock_mhz=345.0, throttle=0x40),
            DeviceSample("GPU-1", t, sm_clock_mhz=mhz, mem_clock_mhz=2619.0, throttle=throttle),
        ]

    def close(self) -> None:
        self.closed = True


def test_a_gpus_clocks_are_its_own_while_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """1980 and 1410 MHz count, median 1695; 210 is idle, and the other device is another."""
    monkeypatch.setattr(module, "INTERVAL_S", 0.001)
    driver = Driver()
    with Clocks(GPU, driver) as clocks:
        while driver.looks < 5:
            time.sleep(0.001)
    assert clocks.found() == {"sm": Clock(1410, 1695, 1980), "memory": Clock(2619, 2619, 2619)}
    assert (clocks.limits(), clocks.slowdowns()) == (["power cap"], [])
    assert driver.closed


def test_a_cpus_clock_is_that_of_the_fastest_we_may_run_on(tmp_path: Path) -> None:
    """Of cpufreq in kHz first, else of /proc/cpuinfo in MHz; a processor that is not ours does not count."""
    ours = sorted(os.sched_getaffinity(0))
    info = tmp_path / "cpuinfo"
    rows = [(n, 2000.0 + i) for i, n in enumerate(ours)] + [(max(ours) + 1, 9000.0)]
    info.write_text("\n\n".join(f"processor\t: {n}\nmodel name\t: X\ncpu MHz\t\t: {mhz}" for n, mhz in rows))
    assert cpu_mhz(tmp_path, info) == 2000.0 + len(ours) - 1
    (tmp_path / f"cpu{ours[0]}/cpufreq").mkdir(parents=True)
    (tmp_path / f"cpu{ours[0]}/cpufreq/scaling_cur_freq").write_text("3700000\n")
    assert cpu_mhz(tmp_path, info) == 3700.0


@pytest.mark.parametrize(
    "text", ["", "processor : 0\ncpu MHz : fast\n", "cpu MHz\t: 2000\n", "processor : 0\n"]
)
def test_a_cpu_that_does_not_tell_has_no_clock(tmp_path: Path, text: str) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(text)
    assert cpu_mhz(tmp_path, info) is None
    assert cpu_mhz(tmp_path, tmp_path / "none") is None


def test_a_cpu_is_looked_at_when_asked() -> None:
    clocks = Clocks(Device("cpu", "cpu", "EPYC", "vm", 2))
    with clocks:
        assert clocks.found() == {}
        clocks.look()
    assert set(clocks.found()) <= {"cpu"}
    assert (clocks.limits(), clocks.slowdowns()) == ([], [])
