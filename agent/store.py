"""What the agent keeps on disk: calibrations, and the last runs."""

from __future__ import annotations

import datetime
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.device import Device
from rooflight.calibration import Calibration
from rooflight.errors import Refused
from rooflight.protocol import encode

#: Older runs are removed when a new one is kept.
KEPT_RUNS = 10
LARGEST_CALIBRATION = 1 << 20


@dataclass(frozen=True, slots=True)
class Store:
    """The state folder; it is made when something is kept."""

    root: Path

    def save(self, calibration: Calibration) -> Path:
        """Keep a calibration in the place of the one before of the same device and threads."""
        path = self.root / "calibrations" / f"{_slot(calibration)}.json"
        write(path, encode(calibration))
        return path

    def find(self, device: Device, note: Callable[[str], None]) -> Calibration | None:
        """The calibration of this very device, ``None`` when there is none.

        A GPU is known by its UUID.  A CPU's ceilings hold for one host and number of threads.  A file
        that cannot be read is told to ``note`` and passed over.
        """
        fitting = [c for c in self.calibrations(note) if _fits(c, device)]
        return max(fitting, key=lambda c: c.measured_at, default=None)

    def calibrations(self, note: Callable[[str], None]) -> list[Calibration]:
        """All that are kept here; a file that cannot be read is told to ``note`` and passed over."""
        found = [self._load(path, note) for path in sorted((self.root / "calibrations").glob("*.json"))]
        return [c for c in found if c is not None]

    def new_run(self, workload: str) -> Path:
        """A fresh folder for a run; all but the newest :data:`KEPT_RUNS` are removed."""
        runs = self.root / "runs"
        make_folder(runs)
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S.%f")
        folder = Path(tempfile.mkdtemp(prefix=f"{stamp}-{workload}-", dir=runs))
        for old in sorted(runs.iterdir())[:-KEPT_RUNS]:
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        return folder

    def _load(self, path: Path, note: Callable[[str], None]) -> Calibration | None:
        try:
            if path.stat().st_size > LARGEST_CALIBRATION:
                raise ValueError("it is too large")
            return msgspec.json.decode(path.read_bytes(), type=Calibration)
        except (OSError, ValueError) as e:
            note(f"the calibration {path} is passed over: {e}")
            return None


def write(path: Path, data: bytes) -> None:
    """Write whole or not at all."""
    make_folder(path.parent)
    try:
        replace(path, (data,))
    except OSError as e:
        raise Refused(f"cannot be written: {e.strerror}", where=str(path)) from e


def replace(path: Path, chunks: Iterable[bytes]) -> None:
    """Write whole or not at all; what was written survives a power cut once this returns.

    What is half written has a name that begins with a dot, and is removed when writing fails.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make ``folder`` and those above it; refused in words where that is not allowed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        hint = "give a folder that can be written (ROOFLIGHT_STATE, --out)"
        raise Refused(f"the folder cannot be made: {e.strerror}", where=str(folder), hint=hint) from e


def _slot(calibration: Calibration) -> str:
    identity = calibration.device, calibration.uuid, calibration.host, calibration.conditions.get("threads")
    return f"{calibration.kind}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}"


def _fits(calibration: Calibration, device: Device) -> bool:
    if (calibration.kind, calibration.device) != (device.kind, device.name):
        return False
    if device.is_gpu:
        return calibration.uuid is not None and calibration.uuid == device.uuid
    return calibration.host == device.host and calibration.conditions.get("threads") == str(device.threads)
