"""The idle daemon's CPU time and memory: part of bench/agent_overhead.py.

It samples eight GPUs of a stub of NVML (tests/agent/stub_nvml.c) by the real pynvml once a second, serves
its socket and /metrics, waits for orders of a real server and delivers to it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from scripts.service import serving
from tests.agent.nvml_stub import compile_stub, lines

ROOT = Path(__file__).resolve().parent.parent
AGENT = (sys.executable, "-m", "agent.cli")
GPUS = 8
#: The first windows are sent, the first orders asked for.
SETTLE_S = 15.0
#: What only the child that analyses may load.
HEAVY = ("numpy", "torch", "pandas")


@dataclass(frozen=True)
class Idle:
    """``cpu_frac`` is of one core; ``heavy`` are libraries that are mapped and must not be."""

    MOST_CPU: ClassVar[float] = 0.005
    MOST_MB: ClassVar[int] = 60
    gpus: int
    cpu_frac: float
    rss_mib: float
    peak_mib: float
    heavy: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Within both bars, and light."""
        most = self.MOST_MB * 1e6 / (1 << 20)
        return self.cpu_frac < self.MOST_CPU and self.peak_mib < most and not self.heavy


def environment(**more: str) -> dict[str, str]:
    """This program's environment without what is meant for other agents, with this checkout first."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("ROOFLIGHT_", "KINETO_"))}
    return own | {"PYTHONPATH": str(ROOT), "ROOFLIGHT_CONFIG": os.devnull} | more


def measure(seconds: float) -> Idle:
    """Start server and daemon, let them settle, and look at the daemon for ``seconds``."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name) / "server", 0) as server:
        folder = Path(name)
        compile_stub(folder)
        (folder / "scenario").write_text(_scenario())
        with _daemon(folder, server.url, _token(folder / "server")) as daemon:
            time.sleep(SETTLE_S)
            cpu, began = _cpu_s(daemon), time.monotonic()
            time.sleep(seconds)
            cpu_frac = (_cpu_s(daemon) - cpu) / (time.monotonic() - began)
            return _idle(daemon, cpu_frac)


def _idle(daemon: int, cpu_frac: float) -> Idle:
    proc = Path(f"/proc/{daemon}")
    status = dict(row.split(":", 1) for row in (proc / "status").read_text().splitlines())
    now, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    maps = (proc / "maps").read_text()
    if "libnvidia-ml.so.1" not in maps:
        raise SystemExit("the daemon samples no device: nothing was measured")
    return Idle(GPUS, cpu_frac, now, peak, tuple(name for name in HEAVY if f"/{name}" in maps))


@contextlib.contextmanager
def _daemon(folder: Path, url: str, token: str) -> Iterator[int]:
    environ = environment(
        LD_LIBRARY_PATH=str(folder),
        ROOFLIGHT_NVML_SCENARIO=str(folder / "scenario"),
        ROOFLIGHT_STATE=str(folder / "state"),
        ROOFLIGHT_SERVER=url,
        ROOFLIGHT_TOKEN=token,
    )
    command = [*AGENT, "daemon", "--socket-dir", str(folder), "--metrics", "0"]
    process = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
        if process.poll() is not None:
            raise SystemExit("the daemon ended early")
    finally:
        process.terminate()
        process.wait(30)


def _token(data: Path) -> str:
    command = [Path(sys.executable).parent / "rooflight-server", "token", "create", "--name", "bench"]
    environ = environment(ROOFLIGHT_DATA=str(data))
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return next(word for word in done.stdout.split() if word.startswith("rfl_"))


def _cpu_s(pid: int) -> float:
    """CPU time of all threads, by the scheduler's clock in ns."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9


def _scenario() -> str:
    """Eight devices that answer all that is asked, each with a process."""
    rows = [f"- nvmlDeviceGetCount 0 {GPUS}", "- nvmlSystemGetDriverVersion 0 580.65.06"]
    for index in range(GPUS):
        answers = {
            "nvmlDeviceGetName": "0 NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetUUID": f"0 GPU-0000000{index}-0000-4000-8000-000000000000",
            "nvmlDeviceGetUtilizationRates": f"0 {90 + index} 40",
            "nvmlDeviceGetPowerUsage": "0 640000",
            "nvmlDeviceGetTemperature": "0 61",
            "nvmlDeviceGetClockInfo:sm": "0 1755",
            "nvmlDeviceGetClockInfo:mem": "0 2619",
            "nvmlDeviceGetTotalEnergyConsumption": "0 123456789",
            "nvmlDeviceGetMemoryInfo_v2": "0 85520809984 500000000 60000000000 25020809984",
            "nvmlDeviceGetMigMode": "0 0 0",
            "nvmlDeviceGetCurrentClocksThrottleReasons": "0 4",
            "nvmlDeviceGetComputeRunningProcesses": f"0 {os.getpid()} 60000000000 4294967295",
            **{f"field:{number}": "0 0" for number in (3, 4, 5, 6, 197, 198)},  # ECC, PCIe
            **{f"field:{number}:all": "0 1000" for number in (138, 139)},  # NVLink
            "field:82": "0 70 1",
        }
        rows += [f"{index} {call} {answer}" for call, answer in answers.items()]
    return lines(*rows)
