"""What the host's /proc tells about memory and processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: The inode of the kernel's first PID namespace (PROC_PID_INIT_INO): it is the same on every Linux.
INITIAL_PID_NAMESPACE = "pid:[4026531836]"


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

    def process_name(self, pid: int) -> str | None:
        """The name of a process that the driver calls ``pid``, ``None`` if it is not one of ours."""
        if not self.in_initial_namespace():
            return None
        try:
            text = (self.root / str(pid) / "comm").read_text(encoding="utf-8", errors="backslashreplace")
        except OSError:
            return None
        return text.strip() or None
