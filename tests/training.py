"""Real torch training processes that know nothing of Rooflight, and the socket that they ask."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = """
import sys, time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
    open(sys.argv[1], "w").close()
    time.sleep(0.01)
"""


@dataclass
class Host:
    """A host with training processes; ``sockets`` is the folder of their socket."""

    folder: Path
    sockets: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, rank: int) -> subprocess.Popen[bytes]:
        """Start a training process and wait until it trains."""
        script, settings = self.folder / "train.py", self.folder / "libkineto.conf"
        script.write_text(SCRIPT)
        # Asked every second, so that the test is not kept waiting; 5 s is Kineto's own.
        settings.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        environ = os.environ | {
            "KINETO_USE_DAEMON": "1",
            "KINETO_IPC_SOCKET_DIR": str(self.sockets),
            "KINETO_CONFIG": str(settings),
            "KINETO_LOG_LEVEL": "6",
            "RANK": str(rank),
        }
        trains = self.folder / f"trains{rank}"
        self.running.append(subprocess.Popen([sys.executable, str(script), str(trains)], env=environ))
        wait_until(trains.exists)
        return self.running[-1]


@contextlib.contextmanager
def a_host(folder: Path) -> Iterator[Host]:
    """A host whose processes end with the block."""
    # The path of a socket has at most 107 bytes: a short name.
    with tempfile.TemporaryDirectory() as sockets:
        host = Host(folder, Path(sockets))
        try:
            yield host
        finally:
            for process in host.running:
                process.kill()
                process.wait()


def wait_until(it: Callable[[], Any], seconds: float = 90.0) -> Any:
    """What ``it`` gives once that is true."""
    end = time.monotonic() + seconds
    while not (found := it()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found


def a_vanished_pid() -> int:
    """The pid of a process that has ended."""
    tell = [sys.executable, "-c", "import os; print(os.getpid())"]
    return int(subprocess.run(tell, capture_output=True, check=True, text=True).stdout)
