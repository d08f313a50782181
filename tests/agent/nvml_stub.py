"""Runs the real pynvml on a compiled stub of NVML, in a process of its own.

The dynamic loader reads LD_LIBRARY_PATH once, at the start of a process, and a library stays loaded: a
child keeps the stub out of the test process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("stub_nvml.c")
ROOT = Path(__file__).parents[2]

#: Samples each moment and prints the samples of all as JSON.
PROGRAM = """
import os, pathlib, sys
import msgspec
from agent.sampler.host import Host
from agent.sampler.nvml import NoDriverError, open_nvml

scenario = pathlib.Path(os.environ["ROOFLIGHT_NVML_SCENARIO"])
ticks = msgspec.json.decode(sys.stdin.buffer.read())
scenario.write_text(ticks[0][1])
try:
    nvml = open_nvml(Host(pathlib.Path(sys.argv[1])), pcie_calls=4)
except NoDriverError as e:
    sys.exit(str(e))
samples = []
for t, text in ticks:
    scenario.write_text(text)
    samples.append(nvml.sample(t))
sys.stdout.buffer.write(msgspec.json.encode({"driver": nvml.driver_version(), "samples": samples}))
nvml.close()
"""


@dataclass(frozen=True, slots=True)
class StubNvml:
    """The folder that holds the compiled library."""

    folder: Path

    def run(self, ticks: list[tuple[float, str]], proc: Path) -> subprocess.CompletedProcess[bytes]:
        env = {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.folder),
            "ROOFLIGHT_NVML_SCENARIO": str(self.folder / "scenario"),
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, str(proc)],
            input=json.dumps(ticks).encode(),
            env=env,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def sample(
        self, ticks: list[tuple[float, str]], proc: Path = Path("/proc")
    ) -> list[list[dict[str, Any]]]:
        """The samples of every moment, as the JSON of :class:`agent.sampler.sample.DeviceSample`."""
        done = self.run(ticks, proc)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)["samples"]


def compile_stub(folder: Path, *flags: str) -> StubNvml:
    """Build libnvidia-ml.so.1 into ``folder``."""
    library = folder / "libnvidia-ml.so.1"
    compiler = shutil.which("gcc") or shutil.which("cc") or "cc"
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Werror",
        *flags,
        "-o",
        str(library),
        str(SOURCE),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return StubNvml(folder)


def lines(*rows: str) -> str:
    """A scenario of the given lines."""
    return "\n".join(rows) + "\n"
