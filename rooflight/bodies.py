"""What a request to the service carries: bodies that can be sent again from their start."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from rooflight.errors import Refused

CHUNK = 1 << 18
#: What a line that breaks costs at most.
PART_BYTES = 8 << 20
#: Media type of a file by its first two bytes; JSON has many beginnings.
_MEDIA = {b"\x1f\x8b": "application/gzip", b"PK": "application/zip"}


@dataclass(frozen=True, slots=True)
class Body:
    """A request body that can be read from its start again for each try."""

    size: int
    chunks: Callable[[], Iterator[bytes]]
    kind: str = "application/json"
    encoding: str | None = None


def json_body(value: Mapping[str, Any]) -> Body:
    """A value as JSON."""
    return plain_body(msgspec.json.encode(value))


def piece(file: Path, start: int) -> bytes:
    """The part of a file that is sent at once, from ``start``."""
    with file.open("rb") as source:
        source.seek(start)
        return source.read(PART_BYTES)


def digest(data: bytes) -> dict[str, str]:
    """The header that lets a broken part be told (RFC 9530)."""
    return {"Content-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"}


def plain_body(data: bytes) -> Body:
    """Bytes as they are."""
    return Body(len(data), lambda: iter((data,)))


def zipped_body(data: bytes) -> Body:
    """Bytes, gzipped; the same bytes each time."""
    packed = gzip.compress(data, 6, mtime=0)
    return Body(len(packed), lambda: iter((packed,)), encoding="gzip")


def file_body(path: Path, on_progress: Callable[[int, int], None] | None, start: int) -> Body:
    """A file from ``start``, streamed; ``on_progress`` hears of bytes sent and of all."""
    with _reading(path) as f:
        f.seek(start)
        size, kind = os.fstat(f.fileno()).st_size - start, _MEDIA.get(f.read(2), "application/json")

    def chunks() -> Iterator[bytes]:
        sent = 0
        with _reading(path) as f:
            f.seek(start)
            while sent < size:
                chunk = _read(f, min(CHUNK, size - sent), path)
                sent += len(chunk)
                yield chunk
                if on_progress:
                    on_progress(sent, size)

    return Body(size, chunks, kind)


def _reading(path: Path) -> BinaryIO:
    # An OSError of the file must not be taken for one of the network, which is tried again.
    try:
        return path.open("rb")
    except OSError as e:
        raise Refused(f"cannot read the trace: {e.strerror}", where=str(path), hint="check the path") from e


def _read(f: BinaryIO, size: int, path: Path) -> bytes:
    try:
        chunk = f.read(size)
    except OSError as e:
        raise Refused(f"cannot read the trace: {e.strerror}", where=str(path), hint="check the disk") from e
    if not chunk:
        raise Refused("the file became shorter while it was sent", where=str(path), hint="send it again")
    return chunk
