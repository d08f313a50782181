"""The queue on disk between this host and the server: bounded, and whole after any crash.

    spool = Spool(folder, limit_bytes=256 << 20, note=note)
    spool.put("telemetry", body, key)         # on disk once it returns True
    batch = spool.next()                      # the oldest; None when there is none
    spool.delivered(batch, acknowledged)      # or spool.quarantine(batch, reason), spool.split(batch, halves)

A batch is a file (:mod:`agent.batch`) that gets its name when it is whole.  When there is no room the oldest
telemetry goes first, then profiles, then traces; what was given up is counted (:mod:`agent.tally`).  A file
that is not what was written is set apart (:mod:`agent.quarantine`).
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from agent.batch import KINDS, Address, CorruptError, Head, Kind, body_of, body_start, head_of, look, pieces
from agent.quarantine import Quarantine
from agent.store import make_folder, replace
from agent.tally import DROPPED, Tally
from rooflight.errors import Refused

LIMIT_BYTES = 256 << 20
#: However small they are: each is a file, and a row in memory.
MOST_BATCHES = 20_000
_END = ".batch"
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch in the queue.  ``place`` orders; halves of a batch have its place with one number more."""

    path: Path
    place: tuple[int, ...]
    head: Head

    @property
    def key(self) -> str:
        return self.head.key

    @property
    def kind(self) -> Kind:
        return self.head.kind

    @property
    def size(self) -> int:
        return self.head.size

    @property
    def rank(self) -> tuple[int, tuple[int, ...]]:
        """The lowest is given up first."""
        return KINDS.index(self.kind), self.place

    def start(self) -> int:
        """Where the body begins in the file; :class:`CorruptError` when its checksum is wrong."""
        return body_start(self.path)

    def body(self) -> bytes:
        """The body; :class:`CorruptError` when its checksum is wrong."""
        return body_of(self.path)


T = TypeVar("T")
P = ParamSpec("P")


def _alone(method: Callable[Concatenate[Spool, P], T]) -> Callable[Concatenate[Spool, P], T]:
    """One thread at a time: loops put batches in while another sends them."""

    @functools.wraps(method)
    def call(self: Spool, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._mutex:
            return method(self, *args, **kwargs)

    return call


class Spool:
    """The queue in ``folder``, which belongs to this process alone.  ``limit_bytes`` bounds the bodies.

    :class:`~rooflight.errors.Refused` when another process has it or it cannot be made; after that nothing
    of the disk's is raised: what cannot be kept is counted as dropped and told to ``note``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        note: Callable[[str], None],
        limit_bytes: int = LIMIT_BYTES,
        quarantine_bytes: int | None = None,
    ) -> None:
        self.folder, self.limit_bytes, self._note = folder, limit_bytes, note
        bound = limit_bytes // 4 if quarantine_bytes is None else quarantine_bytes
        make_folder(folder)
        self._mutex = threading.RLock()
        #: The batch that is being sent is not given up for another.
        self._sending: str | None = None
        self._lock = _lock(folder)
        self.quarantined = Quarantine(folder / "quarantine", bound, note)
        self._tally = Tally(folder, note)
        # In the order of their places.  An OrderedDict gives its first in one step, however many went before.
        self._batches: OrderedDict[str, Batch] = OrderedDict()
        self._bytes = 0
        self._last = 0
        self._recover()

    def close(self) -> None:
        """Let another process have the folder."""
        os.close(self._lock)

    @property
    def bytes(self) -> int:
        """Bytes of all bodies in the queue."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._batches)

    def __contains__(self, key: object) -> bool:
        return key in self._batches

    @_alone
    def batches(self) -> list[Batch]:
        """The queue, oldest first."""
        return list(self._batches.values())

    @_alone
    def dropped(self) -> dict[str, int]:
        """Batches given up and not yet told to a server, by kind."""
        return self._tally.totals()

    @_alone
    def put(
        self, kind: Kind, body: bytes | Path, key: str | None = None, *, address: Address | None = None
    ) -> bool:
        """Keep a batch; true once it survives a crash, false when it was dropped.

        ``body`` is what will be sent, or a file that holds it.  A key that is in the queue already changes
        nothing.
        """
        key = key or uuid.uuid4().hex
        if key in self._batches:
            return True
        self._last += 1
        place = (self._last,)
        try:
            head = head_of(kind, body, key, address or Address())
        except OSError as e:
            return self._refuse(place, kind, f"cannot be read: {e.strerror}")
        batch = Batch(self._path(place, kind), place, head)
        if not self._make_room(batch):
            return self._refuse(place, kind, f"there is no room for its {head.size} bytes")
        return self._keep(batch, body)

    @_alone
    def next(self, skip: Collection[str] = ()) -> Batch | None:
        """The oldest batch whose key is not in ``skip``."""
        found = next((batch for key, batch in self._batches.items() if key not in skip), None)
        self._sending = found.key if found else None
        return found

    @_alone
    def release(self) -> None:
        """The batch that :meth:`next` gave is not being sent any more: an outage must not keep the oldest."""
        self._sending = None

    @_alone
    def delivered(self, batch: Batch, acknowledged: Mapping[str, int]) -> None:
        """The server has the batch, and has counted ``acknowledged`` as dropped."""
        self._tally.acknowledge(batch.key, acknowledged)
        self._forget(batch)
        # One that cannot be removed is sent again after the next start, under the same key.
        self._remove(batch.path)

    @_alone
    def quarantine(self, batch: Batch, reason: str, status: int | None = None) -> None:
        """Set a batch apart that will never be taken."""
        self._forget(batch)
        self._set_apart(batch.path, reason, status)

    @_alone
    def split(self, batch: Batch, halves: tuple[bytes, bytes]) -> bool:
        """Put two batches in the place of one, under keys made of its own; false when the disk is full.

        After a crash in between the whole is there beside its halves: sent again, it is split again into
        the same two.
        """
        parts = []
        for number, body in enumerate(halves, 1):
            place = (*batch.place, number)
            head = head_of(batch.kind, body, f"{batch.key}/{number}", batch.head.address)
            parts.append(Batch(self._path(place, batch.kind), place, head))
        try:
            for part, body in zip(parts, halves, strict=True):
                replace(part.path, pieces(part.head, body))
        except OSError as e:
            self._note(f"{batch.path.name} cannot be split: {e.strerror}")
            return False
        for part in reversed(parts):
            self._remember(part)
            self._batches.move_to_end(part.key, last=False)
        self.delivered(batch, {})
        return True

    def _keep(self, batch: Batch, body: bytes | Path) -> bool:
        try:
            self._write(batch, body)
        except CorruptError as e:
            return self._refuse(batch.place, batch.kind, str(e))
        except OSError as e:
            return self._refuse(batch.place, batch.kind, f"cannot be written: {e.strerror}")
        self._remember(batch)
        return True

    def _write(self, batch: Batch, body: bytes | Path) -> None:
        """Write the file.  A full disk costs the oldest of the lighter batches, once, if they suffice."""
        try:
            replace(batch.path, pieces(batch.head, body))
        except OSError as e:
            if e.errno not in _FULL or not self._free(batch, batch.size):
                raise
            replace(batch.path, pieces(batch.head, body))

    def _make_room(self, batch: Batch) -> bool:
        """Whether ``batch`` fits, once what weighs less has gone; what would not make it fit stays."""
        if batch.size > self.limit_bytes:
            return False
        if len(self) >= MOST_BATCHES and not self._free(batch, 1):
            return False
        excess = self._bytes + batch.size - self.limit_bytes
        return excess <= 0 or self._free(batch, excess)

    def _free(self, batch: Batch, wanted: int) -> bool:
        """Drop the oldest of the batches that go before ``batch`` until ``wanted`` bytes are free."""
        freed, chosen = 0, []
        for victim in self._lightest():
            if freed >= wanted or victim.rank > batch.rank:
                break
            chosen.append(victim)
            freed += victim.size
        if freed < wanted:
            return False
        return all(self._drop(victim) for victim in chosen)

    def _lightest(self) -> Iterator[Batch]:
        """The queue in the order in which it is given up."""
        for kind in KINDS:
            yield from (b for b in self._batches.values() if b.kind == kind and b.key != self._sending)

    def _drop(self, batch: Batch) -> bool:
        try:
            self._tally.drop(batch.path.name, batch.kind)
        except OSError as e:
            self._note(f"{batch.path.name} cannot be dropped: {e.strerror}")
            return False
        self._forget(batch)
        return True

    def _refuse(self, place: tuple[int, ...], kind: Kind, reason: str) -> bool:
        self._note(f"a {kind} is dropped: {reason}")
        self._tally.refuse(self._path(place, kind).name, kind)
        return False

    def _remember(self, batch: Batch) -> None:
        self._forget(batch)
        self._batches[batch.key] = batch
        self._bytes += batch.size

    def _forget(self, batch: Batch) -> None:
        if self._batches.pop(batch.key, None) is not None:
            self._bytes -= batch.size

    def _path(self, place: tuple[int, ...], kind: Kind) -> Path:
        first, *more = place
        return self.folder / f"{'.'.join([f'{first:016d}', *map(str, more)])}-{kind}{_END}"

    def _recover(self) -> None:
        """Find what the last process left: half-written files go, broken ones are set apart."""
        try:
            names = sorted(path.name for path in self.folder.iterdir())
        except OSError as e:
            raise Refused(f"the spool cannot be read: {e.strerror}", where=str(self.folder)) from e
        self._tally.load(dict(_dropped(names)))
        self._last = max(self._tally.last, *map(_number, [*names, *self.quarantined.names()]), 0)
        for name in names:
            if name.startswith("."):
                self._remove(self.folder / name)
        for name in sorted((n for n in names if n.endswith(_END) and not n.startswith(".")), key=_order):
            self._recover_one(self.folder / name)
        self.quarantined.trim()

    def _recover_one(self, path: Path) -> None:
        try:
            head, place = look(path), _place(path.name)
            if self._path(place, head.kind).name != path.name:
                raise CorruptError("its name is that of another batch")
        except (CorruptError, ValueError) as e:
            self._set_apart(path, f"corrupt: {e}")
        except OSError as e:
            self._note(f"{path.name} cannot be read: {e.strerror}")
        else:
            self._remember(Batch(path, place, head))

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as e:
            self._note(f"{path.name} cannot be removed: {e.strerror}")

    def _set_apart(self, path: Path, reason: str, status: int | None = None) -> None:
        try:
            self.quarantined.take(path, reason, status)
        except OSError as e:
            self._note(f"{path.name} cannot be set apart: {e.strerror}")


def _lock(folder: Path) -> int:
    """Hold the folder until this process ends, however it ends."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        os.close(handle)
        hint = "one agent on a host; another state folder for a second one"
        raise Refused("another agent uses this spool", where=str(folder), hint=hint) from e
    return handle


def _dropped(names: list[str]) -> Iterator[tuple[str, Kind]]:
    for name in names:
        kind = name.partition("-")[2].partition(".")[0]
        for known in KINDS:
            if name.endswith(DROPPED) and kind == known:
                yield name, known


def _place(name: str) -> tuple[int, ...]:
    """The place that a file's name tells; :class:`ValueError` when it tells none."""
    return tuple(int(number) for number in name.partition("-")[0].split("."))


def _order(name: str) -> tuple[int, ...]:
    try:
        return _place(name)
    except ValueError:
        return ()


def _number(name: str) -> int:
    return next(iter(_order(name)), 0)
