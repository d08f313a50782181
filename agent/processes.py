"""What the kernel tells of a process, read from /proc; ``None`` or nothing where it does not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_ANCESTORS = 64
_LONGEST_COMMAND = 200
#: Where launchers write a process's rank: torchrun, Slurm, Open MPI, MPICH.
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of this namespace; ``root`` stands for /proc."""

    root: Path = Path("/proc")

    def started(self, pid: int) -> int | None:
        """When a process started, in the kernel's ticks; with the pid it names one process for ever."""
        fields = self._stat(pid)
        return None if fields is None else int(fields[19])

    def ancestors(self, pid: int) -> list[int]:
        """The parent, its parent, and so on."""
        found: list[int] = []
        while len(found) < _MOST_ANCESTORS and (fields := self._stat(pid)) is not None:
            pid = int(fields[1])
            if pid <= 0:
                break
            found.append(pid)
        return found

    def rank(self, pid: int) -> int | None:
        """The rank its launcher gave it."""
        return _first(self.environ(pid), RANKS)

    def environ(self, pid: int) -> dict[str, str]:
        """The environment that it was started with; empty for another user's process."""
        rows = self._read(pid, "environ").decode(errors="replace").split("\0")
        return dict(row.partition("=")[::2] for row in rows if "=" in row)

    def command(self, pid: int) -> str | None:
        """Its command line, cut to a readable length."""
        words = self._read(pid, "cmdline").decode(errors="replace").split("\0")
        return " ".join(words).strip()[:_LONGEST_COMMAND] or None

    def pids(self) -> list[int]:
        """All of this namespace but ourselves, threads not counted."""
        names = (path.name for path in self.root.iterdir())
        return sorted(int(name) for name in names if name.isdecimal() and int(name) != os.getpid())

    def maps(self, pid: int, library: str) -> bool:
        """Whether it has a library of that name loaded; false for another user's process."""
        return f"/{library}".encode() in self._read(pid, "maps")

    def holding(self, target: str) -> int | None:
        """Who has ``target`` (``socket:[INODE]``) open; ``None`` where that is not ours to see."""
        return next((pid for pid in self.pids() if target in self._open(pid)), None)

    def shares(self, pid: int, namespace: str) -> bool:
        """Whether it is in our namespace (``net``, ``mnt``); true where the kernel does not say."""
        try:
            theirs, ours = ((self.root / str(p) / "ns" / namespace).readlink() for p in (pid, "self"))
        except OSError:
            return True
        return theirs == ours

    def own_files(self, pid: int) -> Path | None:
        """The root of its files as seen from here, ``None`` where it is our own."""
        return None if self.shares(pid, "mnt") else self.root / str(pid) / "root"

    def _stat(self, pid: int) -> list[str] | None:
        """The fields after the command's name, which may hold anything, brackets too."""
        _, bracket, rest = self._read(pid, "stat").decode(errors="replace").rpartition(")")
        fields = rest.split()
        # A zombie has ended: it will write nothing any more.
        return fields if bracket and len(fields) > 19 and fields[0] not in ("Z", "X") else None

    def _open(self, pid: int) -> Iterator[str]:
        """What its descriptors lead to; nothing for another user's process."""
        try:
            links = list((self.root / str(pid) / "fd").iterdir())
        except OSError:
            return
        for link in links:
            with contextlib.suppress(OSError):
                yield str(link.readlink())

    def _read(self, pid: int, name: str) -> bytes:
        try:
            return (self.root / str(pid) / name).read_bytes()
        except OSError:
            return b""


def _first(environ: dict[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdecimal() and len(text) < 10:
            return int(text)
    return None
