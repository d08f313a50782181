"""The state folder: its room, what waits in it, and the calibrations."""

from __future__ import annotations

import datetime
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.capture.traces import Room
from agent.doctor.rows import Row
from agent.quarantine import Quarantine
from agent.store import Store
from rooflight.calibration import Calibration

#: A driver, a library or a cooler has changed since, more likely than not.
STALE_DAYS = 180
#: Of the budget: from here on an outage soon costs telemetry.
_FULL = 0.5


def state(folder: Path, spool_mib: float, free: int | None = None) -> Iterator[Row]:
    """Whether it can be written, is private, and has room; ``free`` bytes of its disk."""
    there = next(p for p in (folder, *folder.parents) if p.exists())
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        fix = "Give it to the agent's user, or set ROOFLIGHT_STATE"
        yield Row("state", "problem", f"{folder} cannot be written", fix)
        return
    yield Row("state", "ok", f"{folder}{'' if folder.exists() else ' will be made'}")
    if folder.exists() and folder.stat().st_mode & 0o077 and folder.stat().st_uid == os.geteuid():
        yield Row("state", "warning", "other users may read it", f"chmod 700 {folder}; the daemon does so")
    yield from _room(shutil.disk_usage(there).free if free is None else free, folder, spool_mib)


def _room(free: int, folder: Path, spool_mib: float) -> Iterator[Row]:
    wanted = int(spool_mib * (1 << 20)) - sum(size for _, size in _batches(folder / "spool"))
    spare = Room(folder).spare
    told = f"{free >> 20} MiB are free"
    if free < wanted:
        fix = "Free some, or set a smaller --spool-mib"
        yield Row("disk", "warning", f"{told}, what waits to be sent may take {wanted >> 20} more", fix)
    if free < spare:
        told = f"{told}, less than {spare >> 20}: nothing is recorded"
        yield Row("disk", "problem", told, "Free some, or set ROOFLIGHT_STATE elsewhere")
    if free >= max(wanted, spare):
        yield Row("disk", "ok", told)


def spool(folder: Path, limit_mib: float) -> Iterator[Row]:
    """What waits to be sent, what was set apart, and whether an agent is at it."""
    yield Row("daemon", "ok", "runs" if _is_held(folder / "lock") else "none runs with this state folder")
    batches = _batches(folder)
    size, limit = sum(size for _, size in batches), limit_mib * (1 << 20)
    told = f"{len(batches)} batches of {size / (1 << 20):.1f} MiB wait, of {limit_mib:g} MiB"
    if size > _FULL * limit:
        fix = "When it is full the oldest telemetry goes: see server, or raise --spool-mib"
        yield Row("spool", "warning", told, fix)
    else:
        yield Row("spool", "ok", told)
    apart = Quarantine(folder / "quarantine", 0, lambda _: None)
    if names := apart.names():
        why = apart.reason(names[-1])
        told = f"{len(names)} batches are set apart; the last: {why.reason if why else 'for no reason known'}"
        yield Row("spool", "warning", told, f"Look at them and remove them: {apart.folder}")


def calibrations(store: Store, uuids: Iterable[str], now: datetime.datetime | None = None) -> Iterator[Row]:
    """Whether every device of ``uuids`` was calibrated, and not too long ago."""
    unread: list[str] = []
    kept = store.calibrations(unread.append)
    known = {c.uuid: c for c in sorted(kept, key=lambda c: c.measured_at)}
    missing = sorted(set(uuids) - set(known))
    stale = [c.device for c in known.values() if _age_days(c, now) > STALE_DAYS]
    fix = "rooflight-agent calibrate --device all, on an idle host"
    for told in unread:
        yield Row("calibration", "warning", told, "Remove it and calibrate anew")
    if missing:
        told = f"{len(missing)} devices were never calibrated: the catalogue's ceilings are used"
        yield Row("calibration", "warning", told, fix)
    if stale:
        told = f"older than {STALE_DAYS} days: {', '.join(sorted(set(stale)))}"
        yield Row("calibration", "warning", told, fix)
    if not (unread or missing or stale):
        yield Row("calibration", "ok", f"{len(kept)} kept")


def _age_days(calibration: Calibration, now: datetime.datetime | None) -> float:
    try:
        at = datetime.datetime.fromisoformat(calibration.measured_at)
    except ValueError:
        return float("inf")
    at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
    return ((now or datetime.datetime.now(datetime.UTC)) - at).total_seconds() / 86_400


def _batches(folder: Path) -> list[tuple[str, int]]:
    """Name and size of the batches; a running daemon may take one away meanwhile."""
    found = []
    for path in folder.glob("[!.]*.batch"):
        try:
            found.append((path.name, path.stat().st_size))
        except FileNotFoundError:
            continue
    return found


def _is_held(lock: Path) -> bool:
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
