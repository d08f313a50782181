"""A run's way to the server: made once, and found again when it is sent a second time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.store import write
from rooflight.client import Client
from rooflight.protocol import decode
from rooflight.retry import Retry

#: Somebody waits at the terminal: five tries, half a minute of pauses at most.
PATIENCE = Retry(tries=5, base_s=2.0, patience_s=60.0)


@dataclass(frozen=True, slots=True)
class Kept:
    """The folder of a run and its files."""

    folder: Path
    workload: str

    @property
    def trace(self) -> Path:
        return self.folder / f"{self.workload}.pt.trace.json.gz"

    @property
    def document(self) -> Path:
        return self.folder / "analysis.json"


class Receipt(msgspec.Struct):
    """Which run of which server an analysis became; it lies beside the analysis."""

    server: str
    project: str
    name: str
    run_id: str


def push_document(client: Client, document: Path, project: str, name: str, *, host: str | None = None) -> str:
    """Send an analysis from its file; the id of its run.

    The run is written down before the analysis goes, so that a second try after a lost answer sends
    the same document to the same run, where its Idempotency-Key makes it one.
    """
    analysis = decode(document.read_bytes())
    path = document.with_name("sent.json")
    receipt = _receipt(path)
    if receipt is None or (receipt.server, receipt.project, receipt.name) != (client.url, project, name):
        client.create_project(project)
        receipt = Receipt(client.url, project, name, client.create_run(project, name, host=host).id)
        write(path, msgspec.json.encode(receipt))
    client.push_analysis(receipt.run_id, analysis)
    return receipt.run_id


def _receipt(path: Path) -> Receipt | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError):
        return None
