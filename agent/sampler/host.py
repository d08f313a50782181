"""What the host's /proc tells about memory and processes."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: The inode of the kernel's first PID namespace (PROC_PID_INIT_INO): it is the same on every Linux.
INITIAL_PID_NAMESPACE = "pid:[4026531836]"


#: Of /proc/PID/stat (proc(5)): the place of the start time behind the name, in ticks after the boot.
_STARTTIME = 19
_TICKS = os.sysconf("SC_CLK_TCK")
#: The kernel tells the time of the boot in whole seconds.
_CLOCK_S = 1.0


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
        booted = self._booted() if self.in_initial_namespace() else None
        if booted is None:
            return None
        try:
            with _opened(self.root / str(pid)) as folder:
                head, _, rest = _read("stat", folder).rpartition(")")
                uid = next(int(r.split()[1]) for r in _read("status", folder).splitlines() if r[:4] == "Uid:")
            started = booted + int(rest.split()[_STARTTIME]) / _TICKS
        except (OSError, ValueError, IndexError, StopIteration):
            return None
        if started > before + _CLOCK_S:
            return None
        return Found(head.partition("(")[2], uid, user_name(uid), round(started, 2))

    def _booted(self) -> float | None:
        try:
            text = (self.root / "stat").read_text(encoding="ascii", errors="replace")
            return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("btime "))
        except (OSError, StopIteration):
            return None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A folder of /proc, held open: it stays that of one process, also when its number is given anew."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _read(name: str, folder: int) -> str:
    opened = os.open(name, os.O_RDONLY, dir_fd=folder)
    with os.fdopen(opened, encoding="utf-8", errors="backslashreplace") as file:
        return file.read()


@functools.lru_cache(maxsize=1024)
def user_name(uid: int) -> str | None:
    """The name of a user of this host; asked once, since a directory may answer slowly."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None
