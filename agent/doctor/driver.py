"""The GPU drivers: nodes in /dev, whether NVML opens, and what it tells."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agent.doctor.rows import Row
from agent.sampler.dcgm import Address, read
from agent.sampler.names import RATIOS
from agent.sampler.nvml import NoDriverError, Nvml, open_nvml
from agent.sampler.sample import DeviceSample

_CONTAINER = "In a container, start it with the GPUs (docker run --gpus all; runtimeClassName: nvidia)"


def nvidia(
    dev: Path = Path("/dev"), proc: Path = Path("/proc"), opened: Callable[[], Nvml] = open_nvml
) -> Iterator[Row]:
    """The NVIDIA driver and its devices."""
    node = dev / "nvidiactl"
    try:
        nvml = opened()
    except NoDriverError as e:
        told = str(e).partition(": no telemetry")[0]
        if node.exists():
            fix = f"After an update of the driver, reboot. {_CONTAINER}"
            yield Row("nvidia", "problem", f"{node} is there, but {told}", fix)
        elif (dev / "kfd").exists():
            yield Row("nvidia", "ok", "no NVIDIA device; see amd")
        else:
            yield Row("nvidia", "warning", f"{told}: no telemetry", _CONTAINER)
        return
    try:
        samples = nvml.sample(time.time())
        yield Row("nvidia", "ok", f"driver {nvml.driver_version() or 'of unknown version'}")
        yield from _devices(samples)
        yield from _persistence(nvml.persistence())
    finally:
        nvml.close()
    yield from _nodes(dev)
    yield from _counters(proc / "driver/nvidia/params")


def amd(dev: Path = Path("/dev"), binding: str | None = None) -> Iterator[Row]:
    """The AMD driver: nothing is said where there is none.  ``binding``: the version of amdsmi."""
    node = dev / "kfd"
    if not node.exists():
        return
    if not os.access(node, os.R_OK | os.W_OK):
        yield Row(
            "amd", "problem", f"{node} may not be opened", "Add the user to the groups render and video"
        )
    elif binding is None:
        yield Row(
            "amd", "warning", "amdsmi is not in this environment: no telemetry", "Install ROCm's amdsmi"
        )
    else:
        yield Row("amd", "ok", f"{node} can be opened, amdsmi {binding}")


def dcgm(address: Address | None) -> Iterator[Row]:
    """The exporter that the daemon would ask: nothing is said where none is set."""
    if address is None:
        return
    try:
        readings = read(address.fetch())
    except (OSError, http.client.HTTPException) as e:
        told = f"{address} does not answer: {e or type(e).__name__}"
        yield Row("dcgm", "warning", told, "Start dcgm-exporter, or set --dcgm to where it listens")
        return
    if not readings:
        yield Row("dcgm", "warning", f"{address} names no GPU", "It may be no dcgm-exporter: see --dcgm")
    elif not any(set(RATIOS) & set(reading.values) for reading in readings.values()):
        told = f"{address} has no profiling figures, which alone say how busy SMs are"
        yield Row("dcgm", "warning", told, "Start it with -f /etc/dcgm-exporter/dcp-metrics-included.csv")
    else:
        yield Row("dcgm", "ok", f"{address} tells profiling figures")


def _devices(samples: list[DeviceSample]) -> Iterator[Row]:
    whole = [s for s in samples if s.parent_uuid is None]
    lost = [s for s in whole if s.state != "ok"]
    slices = len(samples) - len(whole)
    if not whole:
        yield Row("devices", "problem", "the driver sees no device", _CONTAINER)
        return
    names = ", ".join(sorted({s.name or "unnamed" for s in whole}))
    yield Row("devices", "ok", f"{len(whole)} ({names})")
    if slices:
        told = f"MIG is on, {slices} instances: NVML tells their memory, not their utilisation"
        yield Row("devices", "warning", told, "dcgm-exporter tells it")
    if lost:
        names = ", ".join(s.uuid or f"index {s.index}" for s in lost)
        yield Row("devices", "problem", f"lost: {names}", "Drain the host and reset or reboot it")


def _persistence(modes: list[bool | None]) -> Iterator[Row]:
    if False in modes:
        told = "persistence mode is off: the driver unloads between jobs, and each first sample is slow"
        yield Row("devices", "warning", told, "Enable nvidia-persistenced, or nvidia-smi -pm 1")


def _nodes(dev: Path) -> Iterator[Row]:
    closed = [str(p) for p in sorted(dev.glob("nvidia[0-9]*")) if not os.access(p, os.R_OK | os.W_OK)]
    if closed:
        told = f"{', '.join(closed)} may not be opened: workloads of this user cannot use it"
        yield Row("devices", "problem", told, "Mode 0666 is the driver's own (NVreg_DeviceFileMode)")


def _counters(params: Path) -> Iterator[Row]:
    """Ours need no performance counters; who wants ncu's beside a recording does."""
    try:
        text = params.read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    if "RmProfilingAdminOnly: 1" in text:
        fix = "For ncu as a user: NVreg_RestrictProfilingToAdminUsers=0"
        yield Row("counters", "ok", "performance counters are root's alone; recordings need none", fix)
