"""The socket that training processes ask: abstract, or a file in a folder that containers share.

torch looks for the abstract name ``dynolog``, or with ``KINETO_IPC_SOCKET_DIR`` for a file of that name.  The
kernel vouches for the sender's pid and user; what a process says of itself is not trusted.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.capture import wire
from rooflight.errors import Refused

NAME = "dynolog"
CLIENT = "dynoconfigclient"
#: 108 bytes with the final zero, less "/" and the longest name.
LONGEST = 108 - 1 - 1 - len(f"{CLIENT}00000000-0000-0000-0000-000000000000")
_CREDENTIALS = struct.Struct("iII")


@dataclass(frozen=True, slots=True)
class Heard:
    """One datagram; ``pid`` and ``uid`` are the kernel's, ``pid`` 0 where the sender is outside of our
    namespace of processes."""

    data: bytes
    pid: int
    uid: int
    address: bytes | str


class Fabric:
    """``with Fabric(folder) as fabric``; ``folder`` ``None`` is the abstract name."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            self._bind()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Fabric:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def close(self) -> None:
        """Take the name away: a process that finds a dead socket waits for seconds, at its end too."""
        self._socket.close()
        if self._folder is not None:
            (self._folder / NAME).unlink(missing_ok=True)

    def heard(self) -> Iterator[Heard]:
        """What has arrived since."""
        while True:
            try:
                data, extra, _, address = self._socket.recvmsg(wire.LARGEST, 256)
            except (BlockingIOError, InterruptedError):
                return
            credentials = _credentials(extra)
            if credentials is not None and address:
                yield Heard(data, *credentials, address)

    def answer(self, heard: Heard, data: bytes) -> bool:
        """Whether the process took it; one that has gone, or listens no more, does not."""
        address = self._address(heard.address)
        if address is None:
            return False
        try:
            self._socket.sendto(data, address)
        except OSError:
            return False
        return True

    def sweep(self) -> int:
        """Remove the sockets of processes that have ended, which torch leaves behind; how many."""
        dead = [p for p in self._clients() if not _alive(str(p))]
        for path in dead:
            path.unlink(missing_ok=True)
        return len(dead)

    def _clients(self) -> Iterator[Path]:
        if self._folder is not None:
            yield from self._folder.glob(f"{CLIENT}*")

    def _address(self, sender: bytes | str) -> bytes | str | None:
        """Where to answer: in our own folder, whatever path the sender has for it, and nowhere else."""
        name = os.fsdecode(sender)
        if self._folder is None:
            return sender if name.startswith(f"\0{CLIENT}") else None
        base = Path(name).name
        return str(self._folder / base) if base.startswith(CLIENT) else None

    def _bind(self) -> None:
        address = f"\0{NAME}\0" if self._folder is None else str(self._free(self._folder))
        try:
            self._socket.bind(address)
        except OSError as e:
            raise _taken(self._folder, e) from e
        if self._folder is not None:
            # Other users' processes may ask a root agent; an agent of a user answers that user alone.
            (self._folder / NAME).chmod(0o666 if os.geteuid() == 0 else 0o600)

    @staticmethod
    def _free(folder: Path) -> Path:
        path = folder / NAME
        # A process adds a name of 52 characters; longer paths of sockets the kernel does not take.
        if len(os.fsencode(folder)) > LONGEST:
            told = f"the path of the folder for sockets is longer than {LONGEST} bytes"
            raise Refused(
                told, where=str(folder), hint="give a shorter one: --socket-dir, KINETO_IPC_SOCKET_DIR"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if path.is_socket():
                if _alive(str(path)):
                    raise _taken(folder, None)
                path.unlink()
        except OSError as e:
            raise Refused(f"the folder for sockets cannot be used: {e.strerror}", where=str(folder)) from e
        return path


def _alive(path: str) -> bool:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _taken(folder: Path | None, cause: OSError | None) -> Refused:
    where = f"the abstract socket {NAME}" if folder is None else str(folder / NAME)
    told = "another daemon answers there" if cause is None else cause.strerror
    hint = "one agent (or dynolog) answers the processes of a host: stop the other, or use --socket-dir"
    return Refused(f"the socket for captures is taken: {told}", where=where, hint=hint)


def _credentials(extra: list[tuple[int, int, bytes]]) -> tuple[int, int] | None:
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            pid, uid, _ = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
            return pid, uid
    return None
