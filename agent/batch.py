"""A batch on disk: one line that says what it is, then the body as it will be sent.

    rooflight-batch 1 CRC32 {"key": …, "kind": …, "size": …, "sha256": …}
    …

The checksum in the line is that of the JSON after it; size and SHA-256 are those of the body.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from rooflight.errors import RooflightError

Kind = Literal["telemetry", "profile", "trace"]
#: In the order in which they are given up when there is no room.
KINDS: tuple[Kind, ...] = ("telemetry", "profile", "trace")
MAGIC = b"rooflight-batch 1 "
CHUNK = 1 << 18
_LONGEST_HEAD = 1 << 14


class CorruptError(RooflightError):
    """The file is not what was written."""


class Address(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a profile or a trace belongs: a run that exists, or the name of one to be made in a project.

    ``filename`` is what a trace is shown as.  Telemetry needs none of it.
    """

    project: str = "default"
    run: str | None = None
    host: str | None = None
    run_id: str | None = None
    filename: str = "trace.json.gz"


class Head(msgspec.Struct, frozen=True):
    """``key`` is the Idempotency-Key of every try; ``size`` the body's bytes, ``sha256`` its digest."""

    key: str
    kind: Kind
    size: int
    sha256: str
    address: Address = Address()


def head_of(kind: Kind, body: bytes | Path, key: str, address: Address) -> Head:
    """The head of a body in memory or in a file, which is read once for it."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks_of(body):
        digest.update(chunk)
        size += len(chunk)
    return Head(key, kind, size, digest.hexdigest(), address)


def chunks_of(body: bytes | Path) -> Iterator[bytes]:
    """The body piece by piece; :class:`OSError` when its file cannot be read."""
    if isinstance(body, bytes):
        yield body
        return
    with body.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def head_line(head: Head) -> bytes:
    """The first line of the file."""
    text = msgspec.json.encode(head)
    return b"%s%08x %s\n" % (MAGIC, zlib.crc32(text), text)


def pieces(head: Head, body: bytes | Path) -> Iterator[bytes]:
    """All of the file; :class:`CorruptError` at its end when the body is another than the head's."""
    yield head_line(head)
    digest = hashlib.sha256()
    for chunk in chunks_of(body):
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != head.sha256:
        raise CorruptError("the file changed while it was taken")


def read_head(file: BinaryIO) -> Head:
    """Read the first line; ``file`` is at the body then."""
    line = file.readline(_LONGEST_HEAD)
    checksum, _, text = line[len(MAGIC) : -1].partition(b" ")
    if not line.startswith(MAGIC) or not line.endswith(b"\n"):
        raise CorruptError("the first line is not that of a batch")
    if checksum != b"%08x" % zlib.crc32(text):
        raise CorruptError("the first line fails its checksum")
    try:
        return msgspec.json.decode(text, type=Head)
    except msgspec.DecodeError as e:
        raise CorruptError(f"the first line cannot be read: {e}") from e


def look(path: Path) -> Head:
    """The head of a file whose length is right; the body is not read."""
    with path.open("rb") as file:
        head = read_head(file)
        start, end = file.tell(), file.seek(0, 2)
    if end - start != head.size:
        raise CorruptError(f"{end - start} bytes of {head.size}")
    return head


def body_of(path: Path) -> bytes:
    """The body; :class:`CorruptError` unless it is, byte for byte, what was written."""
    with path.open("rb") as file:
        head = read_head(file)
        body = file.read(head.size + 1)
    _check(head, len(body), hashlib.sha256(body).hexdigest())
    return body


def body_start(path: Path) -> int:
    """Where the body begins; :class:`CorruptError` unless it is, byte for byte, what was written."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        head = read_head(file)
        start = file.tell()
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    _check(head, size, digest.hexdigest())
    return start


def _check(head: Head, size: int, digest: str) -> None:
    if (size, digest) != (head.size, head.sha256):
        raise CorruptError(f"the body fails its checksum ({size} bytes of {head.size})")
