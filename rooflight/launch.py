"""Which processes are ranks of one launch: what a launcher gave to all of them, and to no other launch."""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

#: A word of the user's own, the same in all ranks of a launch and in no other; it goes before all else.
VARIABLE = "ROOFLIGHT_LAUNCH"
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID")
#: Of a job that was put back into the queue, and of workers that were started anew.
_SLURM_AGAIN = "SLURM_RESTART_COUNT"
_ELASTIC, _NO_ELASTIC = "TORCHELASTIC_RUN_ID", ("", "none")
_ELASTIC_MORE = ("TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
_START_FIELD = 19  # of /proc/PID/stat after the name: clock ticks from the boot of the machine


def identity(environ: Mapping[str, str], *, several: bool) -> str:
    """A word that the ranks of this launch share; a random one where there are not ``several``.

    Where no launcher tells, ranks are those with one parent: of several hosts each is then a launch.
    """
    if word := environ.get(VARIABLE):
        return _digest((VARIABLE, word))
    if not several:
        return uuid.uuid4().hex
    told = tuple(_told(environ))
    return _digest(told) if told else process(os.getppid(), environ.get(_ELASTIC_MORE[0], ""))


def process(pid: int, *more: str) -> str:
    """A word for a process of this host, which no other process that has its number shares."""
    boot = _read("/proc/sys/kernel/random/boot_id")
    return _digest((socket.gethostname(), boot, str(pid), _started(pid), *more))


def key(*parts: str | None) -> str:
    """An Idempotency-Key of what identifies a request."""
    return _digest(tuple("" if part is None else part for part in parts))


def _told(environ: Mapping[str, str]) -> Iterator[str]:
    """The words of SLURM and of torchrun; both where one starts the other."""
    # Outside of a step (in a batch script) one job starts one launch after another.
    if all(environ.get(name) for name in _SLURM):
        yield from (environ.get(name, "") for name in (*_SLURM, _SLURM_AGAIN))
    # torchrun without a rendezvous calls every run "none".
    if environ.get(_ELASTIC, "").lower() not in _NO_ELASTIC:
        yield from (environ.get(name, "") for name in (_ELASTIC, *_ELASTIC_MORE))


def _started(pid: int) -> str:
    """When a process was started, "" where the system does not tell."""
    # The name of a process stands in parentheses, and may hold some.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[_START_FIELD] if len(fields) > _START_FIELD else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
