"""Which device a recorded process ran on, and what it drew over the recorded steps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from agent.capture.folder import Manifest
from agent.sampler.thread import Sampling
from rooflight.inject.rooflight_window import NOTES
from rooflight.protocol import Document
from rooflight.results.energy import join

#: Other ranks may be a little behind the first.
_LATER_S = 10.0


@dataclass
class Recorded:
    """Whether the window is over: the notes of its first process have been there for a while."""

    folder: Path
    since: float | None = None

    def __call__(self) -> bool:
        if self.since is None:
            if next(self.folder.glob(f"*{NOTES}"), None) is None:
                return False
            self.since = time.monotonic()
        return time.monotonic() - self.since > _LATER_S


def add_energy(document: Document, manifest: Manifest, sampling: Sampling) -> None:
    """The telemetry of the run, and the energy of the steps of each rank whose device is certain.

    The driver names the processes on each device: one that it saw on a single device, and whose recording has
    work on a single one, ran on that.  Numbers of devices are no proof.
    """
    pids = dict(zip(manifest.ranks(), (row.pid for row in manifest.recordings), strict=True))
    joined = None
    for rank in document.ranks:
        worked = [key for key, device in rank.devices.items() if device.n_gpu_events]
        uuid = sampling.device_of(pids[rank.rank]) if rank.rank in pids else None
        if uuid is not None and len(worked) == 1:
            join(rank, worked[0], uuid, sampling.looks(uuid))
            joined = joined or uuid
    document.telemetry = sampling.telemetry(joined)
