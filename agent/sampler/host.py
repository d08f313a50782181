"""What the host's /proc tells about memory and processes."""

from __future__ import annotations

import functools
import os
import pwd
from dataclasses import dataclass, field
from pathlib import Path

#: The inode of the kernel's first PID namespace (PROC_PID_INIT_INO): it is the same on every Linux.
INITIAL_PID_NAMESPACE = "pid:[4026531836]"


#: Of /proc/PID/stat (proc(5)): the place of the start time behind the name, in ticks after the boot.
_STARTTIME = 19
_TICKS = os.sysconf("SC_CLK_TCK")
#: The kernel tells the time of the boot in whole seconds.
_CLOCK_S = 1.0
_MINUTE = 60
_WHOLE = 1 << 16
_MOST_KNOWN = 4096


@dataclass(frozen=True, slots=True)
class Found:
    """A process of this host; ``started`` in seconds since the epoch."""

    name: str
    uid: int
    user: str | None
    started: float


@dataclass(frozen=True, slots=True)
class Host:
    """Reads below ``root``, which tests replace."""

    root: Path = Path("/proc")
    _known: dict[int, tuple[tuple[str, str], Found]] = field(default_factory=dict, compare=False, repr=False)

    def memory(self, key: str) -> int | None:
        """A row of meminfo (``MemTotal``, ``MemAvailable``) in bytes."""
        try:
            lines = (self.root / "meminfo").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return None
        for line in lines:
            name, _, value = line.partition(":")
            number = value.split()
            if name == key and number and number[0].isdecimal():
                return int(number[0]) * 1024
        return None

    def in_initial_namespace(self) -> bool:
        """Whether our pids are the driver's.  In a container they are not, and an equal number there
        is another process."""
        try:
            return str((self.root / "self/ns/pid").readlink()) == INITIAL_PID_NAMESPACE
        except OSError:
            return False

    def process(self, pid: int, before: float) -> Found | None:
        """The process that the driver called ``pid`` at the time ``before``; ``None`` if it is not ours.

        One that started later is another, to which the number was given meanwhile.
        """
        # The kernel reckons the boot from its clock, which may be set.
        booted = _booted(self.root, int(before // _MINUTE))
        if booted is None or not _in_initial_namespace(self.root):
            return None
        try:
            found = self._read(self.root / str(pid), pid, booted)
        except (OSError, ValueError, IndexError, StopIteration):
            self._known.pop(pid, None)
            return None
        return found if found.started <= before + _CLOCK_S else None

    def _read(self, folder: Path, pid: int, booted: float) -> Found:
        """One read of a process that is known; its name and its start say that it is still the same."""
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            head, _, rest = _text("stat", at).rpartition(")")
            told = head, rest.split(None, _STARTTIME + 1)[_STARTTIME]
            known = self._known.get(pid)
            if known is not None and known[0] == told:
                return known[1]
            rows = _text("status", at).splitlines()
        finally:
            os.close(at)
        uid = next(int(row.split()[1]) for row in rows if row.startswith("Uid:"))
        started = round(booted + int(told[1]) / _TICKS, 2)
        found = Found(head.partition("(")[2], uid, user_name(uid), started)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[pid] = told, found
        return found


def _text(name: str, folder: int) -> str:
    """A file of a folder of /proc that is held open: it stays that of one process, also when the number is
    given anew."""
    file = os.open(name, os.O_RDONLY, dir_fd=folder)
    try:
        return os.read(file, _WHOLE).decode("utf-8", "backslashreplace")
    finally:
        os.close(file)


@functools.lru_cache(maxsize=8)
def _in_initial_namespace(root: Path) -> bool:
    return Host(root).in_initial_namespace()


@functools.lru_cache(maxsize=8)
def _booted(root: Path, _minute: int) -> float | None:
    try:
        text = (root / "stat").read_text(encoding="ascii", errors="replace")
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("btime "))
    except (OSError, StopIteration):
        return None


@functools.lru_cache(maxsize=1024)
def user_name(uid: int) -> str | None:
    """The name of a user of this host; asked once, since a directory may answer slowly."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None
