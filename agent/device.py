"""The device that a workload runs on: a CUDA device when torch sees one, else the host CPU."""

from __future__ import annotations

import os
import platform
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflight.errors import MissingExtra, Refused

CHOICES = ("auto", "cuda", "cpu")
_NUMBERED = re.compile(r"cuda:([0-9]{1,3})")
#: Device files of the NVIDIA and the AMD driver.
GPU_NODES = ("/dev/nvidiactl", "/dev/kfd")


@dataclass(frozen=True, slots=True)
class Device:
    """``kind`` is gpu or cpu, ``place`` what torch calls it; ``uuid`` is NVML's, ``None`` for a CPU.
    ``index`` is torch's number of a GPU; ``threads`` are torch's threads for one operator."""

    kind: str
    place: str
    name: str
    host: str
    threads: int
    uuid: str | None = None
    index: int | None = None

    @property
    def is_gpu(self) -> bool:
        return self.kind == "gpu"


def is_choice(text: str) -> bool:
    """Whether :func:`pick` knows it."""
    return text in CHOICES or _NUMBERED.fullmatch(text) is not None


def import_torch() -> Any:
    """torch, which comes from the user's environment: the agent does not install it."""
    if not any(Path(node).exists() for node in GPU_NODES):
        # Without a GPU the profiler has nothing to warn of, yet prints a trace point at each start.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    try:
        import torch
    except ImportError as e:
        raise MissingExtra(
            f"torch is needed and cannot be imported ({e}): run rooflight-agent with a Python that has it"
        ) from e
    return torch


def pick(choice: str) -> Device:
    """``auto`` is CUDA when there is one; ``cuda`` (or ``cuda:N``) without one is refused, never replaced
    by the CPU."""
    torch = import_torch()
    has_cuda = torch.cuda.is_available()
    numbered = _NUMBERED.fullmatch(choice)
    if not has_cuda and (choice == "cuda" or numbered):
        raise Refused("torch sees no CUDA device", hint="use --device cpu, or a torch build with CUDA")
    if choice == "cpu" or not has_cuda:
        return Device("cpu", "cpu", cpu_name(), socket.gethostname(), torch.get_num_threads())
    return _gpu(torch, int(numbered[1]) if numbered else 0)


def every_gpu() -> list[Device]:
    """All GPUs that torch sees; refused where it sees none."""
    torch = import_torch()
    if not torch.cuda.is_available():
        raise Refused("torch sees no CUDA device", hint="--device cpu measures the CPU")
    return [_gpu(torch, index) for index in range(torch.cuda.device_count())]


def gpu_uuid(properties: Any) -> str | None:
    """The UUID as NVML writes it, ``None`` where torch does not tell."""
    uuid = getattr(properties, "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _gpu(torch: Any, index: int) -> Device:
    if index >= torch.cuda.device_count():
        raise Refused(f"there is no cuda:{index}: torch sees {torch.cuda.device_count()} CUDA devices")
    properties = torch.cuda.get_device_properties(index)
    threads = torch.get_num_threads()
    uuid = gpu_uuid(properties)
    return Device("gpu", f"cuda:{index}", properties.name, socket.gethostname(), threads, uuid, index)


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's model as the kernel tells it, else the architecture."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.processor() or platform.machine() or "unknown CPU"


def last_level_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """Size of the biggest cache of CPU 0, ``None`` where the kernel does not tell."""
    sizes = []
    for path in root.glob("index*/size"):
        text = path.read_text(encoding="ascii", errors="replace").strip()
        unit = {"K": 1024, "M": 1024**2}.get(text[-1:], 1)
        digits = text.rstrip("KM")
        if digits.isdecimal():
            sizes.append(int(digits) * unit)
    return max(sizes, default=None)
