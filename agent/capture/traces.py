"""Fetching what a process wrote, and the room that recordings take.

A process writes to /tmp under a name that cannot be guessed, first as a temporary file: when the name is
there the trace is whole.  It is taken only if it is a regular file of that process's user: a link that
somebody laid there is not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from agent.capture.coordinator import Member
from agent.capture.text import written_file
from agent.processes import Processes
from agent.store import make_folder
from rooflight.errors import Refused

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Room:
    """``folder`` holds at most ``budget`` bytes of recordings, and leaves ``spare`` free on its disk."""

    folder: Path
    budget: int = 4 << 30
    spare: int = 1 << 30

    def check(self) -> None:
        """:class:`Refused` where another recording has no room, after the oldest have gone."""
        make_folder(self.folder)
        self.prune(self.budget // 2)
        free = shutil.disk_usage(self.folder).free
        if free < self.spare:
            told = f"{free >> 20} MiB are free, {self.spare >> 20} MiB are kept so"
            raise Refused(f"no room for a recording: {told}", where=str(self.folder))

    def prune(self, most: int) -> None:
        """Remove the oldest captures until at most ``most`` bytes are left."""
        sizes = {path: _size(path) for path in self.folder.iterdir() if path.is_dir()}
        total = sum(sizes.values())
        for path in sorted(sizes, key=lambda p: (p.stat().st_mtime, p.name)):
            if total <= most:
                return
            shutil.rmtree(path, ignore_errors=True)
            total -= sizes[path]


def place(member: Member, processes: Processes) -> Path:
    """Where the trace of a process will be, seen from here: a container has files of its own."""
    path = Path(written_file(member.token, member.client.own))
    root = processes.own_files(member.client.pid)
    return path if root is None else root / path.relative_to("/")


def fetch(member: Member, source: Path, target: Path, most: int) -> bool:
    """Bring a finished trace to ``target``; whether it is there.  :class:`Refused` for one that is not the
    process's own, or of more than ``most`` bytes; it is removed where it lay in any case."""
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as e:
        source.unlink()
        raise Refused(f"the recording cannot be opened: {e.strerror}", where=str(source)) from e
    try:
        with os.fdopen(handle, "rb") as file:
            _check(os.fstat(file.fileno()), member, source, most)
            with os.fdopen(
                os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
            ) as copy:
                shutil.copyfileobj(file, copy, _CHUNK)
    finally:
        source.unlink(missing_ok=True)
    return True


def discard(source: Path) -> None:
    """Remove what a process that ended midway left of its recording."""
    for path in (source, source.with_name(source.name + ".tmp")):
        path.unlink(missing_ok=True)


def _check(found: os.stat_result, member: Member, source: Path, most: int) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_uid != member.client.uid:
        raise Refused("the recording is no file of the process's user", where=str(source))
    if found.st_size > most:
        told = f"{found.st_size >> 20} MiB, the limit is {most >> 20} MiB"
        raise Refused(f"the recording is too large: {told}", where=str(source))


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))
