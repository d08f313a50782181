"""The files of one capture."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent.store import write
from rooflight.errors import Refused

#: What was ordered, what became of each process, the recordings, and the analysis of them.
ORDER, OUTCOME, MANIFEST, ANALYSIS = "order.json", "outcome.json", "manifest.json", "analysis.json"


class Recorded(msgspec.Struct):
    """The recording of one process: its file in the folder, and its rank where the launcher told it."""

    file: str
    pid: int
    rank: int | None = None


class Manifest(msgspec.Struct):
    """The recordings of one run.  ``begins_at_step``: they were begun as an optimizer's step ended."""

    recordings: list[Recorded]
    begins_at_step: bool = False

    def ranks(self) -> list[int]:
        """The rank of each: its launcher's word, unless two have the same or one has none; then by their
        pids, since a launcher starts its ranks in order."""
        told = [row.rank for row in self.recordings]
        if None not in told and len(set(told)) == len(told):
            return [rank for rank in told if rank is not None]
        order = sorted(row.pid for row in self.recordings)
        return [order.index(row.pid) for row in self.recordings]


def trace_file(folder: Path, pid: int) -> Path:
    """The recording of one process that was ordered to record."""
    return folder / f"{pid}.pt.trace.json"


def keep(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside the recordings."""
    write(folder / MANIFEST, msgspec.json.encode(manifest))


def manifest_of(folder: Path) -> Manifest:
    """The manifest of a folder; :class:`Refused` where there is none that can be read."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as e:
        raise Refused(f"not the folder of a capture: {e}", where=str(folder)) from e
