"""An agent for tests that is killed: puts numbered batches, says which are on disk, and delivers.

    python -m tests.agent.filler FOLDER URL FIRST

Each number is a sample of its own; a line ``put N`` is written once the spool has acknowledged it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from agent.config import Config
from agent.delivery import Delivery
from agent.pushes import telemetry
from agent.sender import ServerSender
from agent.spool import Spool
from rooflight.retry import Retry

FAST = Retry(tries=sys.maxsize, base_s=0.001, cap_s=0.05, patience_s=1.0)


def main(folder: Path, url: str, first: int) -> None:
    """Goes on until it is killed."""
    spool = Spool(folder, limit_bytes=1 << 20, note=lambda text: print("note", text, flush=True))
    sender = ServerSender(lambda: Config(url, None, "default", folder))
    delivery = Delivery(spool, sender, lambda text: print("note", text, flush=True), retry=FAST)
    print("ready", flush=True)
    number = first
    while True:
        if len(spool) < 20:
            window = {"uuid": "GPU-1", "t_start": float(number), "t_end": float(number)}
            if spool.put("telemetry", telemetry([window], host="gpu-7"), f"k{number}"):
                print("put", number, flush=True)
            number += 1
        if number % 3 == 0 or len(spool) >= 20:
            time.sleep(min(0.002, delivery.step(time.monotonic())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
