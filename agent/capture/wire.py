"""The datagrams of Kineto's IPC fabric (libkineto ``IpcFabricConfigClient``, torch 2.1 and later).

A datagram is a length and a type of 32 bytes, then the payload; numbers are little endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<Q32s")
_POLL = struct.Struct("<iiq")
_COUNT = struct.Struct("<i")
#: Bits of a poll's type: what the process would take an order for.
EVENTS, ACTIVITIES = 1, 2
#: Longer than any poll: 40 bytes of header, 16 of numbers, 4 for each ancestor.
LARGEST = 8192
_MOST_ANCESTORS = 1024


@dataclass(frozen=True, slots=True)
class Poll:
    """A process asks for an order.  ``pids``: its own in its own namespace, then its ancestors';
    ``free``: whether it could record now; ``job``: its Slurm job, 0 for none."""

    pids: tuple[int, ...]
    free: bool
    job: int


@dataclass(frozen=True, slots=True)
class Context:
    """A process of an older Kineto introduces itself before its first poll."""

    gpu: int
    pid: int
    job: int


def parse(datagram: bytes) -> Poll | Context | None:
    """What a datagram says; ``None`` for one that is none of these, whoever sent it."""
    if len(datagram) < _HEADER.size:
        return None
    size, kind = _HEADER.unpack_from(datagram)
    body = datagram[_HEADER.size :]
    if size != len(body):
        return None
    return {b"req": _poll, b"ctxt": _context}.get(kind.rstrip(b"\0"), _nothing)(body)


def order(text: str) -> bytes:
    """The answer to a poll; empty ``text``: nothing to do."""
    return _packed(b"req", text.encode())


def welcome(count: int) -> bytes:
    """The answer to a :class:`Context`: how many processes of its job are known."""
    return _packed(b"ctxt", _COUNT.pack(count))


def _packed(kind: bytes, body: bytes) -> bytes:
    return _HEADER.pack(len(body), kind) + body


def _poll(body: bytes) -> Poll | None:
    if len(body) < _POLL.size:
        return None
    bits, count, job = _POLL.unpack_from(body)
    if not 1 <= count <= _MOST_ANCESTORS or len(body) != _POLL.size + 4 * count:
        return None
    return Poll(struct.unpack_from(f"<{count}i", body, _POLL.size), bool(bits & ACTIVITIES), job)


def _context(body: bytes) -> Context | None:
    return Context(*_POLL.unpack(body)) if len(body) == _POLL.size else None


def _nothing(_body: bytes) -> None:
    return None
