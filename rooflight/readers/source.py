"""Bytes in, plain bytes out: unpacking with limits, for files and for uploads that stream in.

:class:`Unpacker` opens a zip with one trace, inflates gzip (any number of members) and passes everything
else through; it refuses what is too large while it inflates, never after.  :class:`Checker` watches an
upload without keeping it: the archive must be whole and its JSON must begin and end as one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rooflight.errors import Refused, Truncated
from rooflight.readers.envelope import HEAD_BYTES, SPACE, empty, start_of
from rooflight.readers.gzipped import Gunzip
from rooflight.readers.limits import DEFAULT_LIMITS, Limits, Meter
from rooflight.readers.zipped import END, LOCAL, Unzip

__all__ = ["DEFAULT_LIMITS", "Checker", "Limits", "Unpacker", "unpacked", "unpacked_file"]

CHUNK = 1 << 20
_ZIP_MAGIC = (LOCAL, END)


class Unpacker:
    """Opens what is fed, by its first bytes; a plain input passes through.  Memory is bounded by the
    chunk fed."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._meter = Meter(limits)
        self._head: bytes | None = b""  # None once it is known whether it is a zip
        self._zip: Unzip | None = None
        self._gunzip = Gunzip(self._meter)

    @property
    def bytes_out(self) -> int:
        """How many plain bytes there were so far."""
        return self._meter.bytes_out

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The plain bytes that ``data`` adds."""
        self._meter.bytes_in += len(data)
        if self._head is not None:
            data = self._head + data
            if len(data) < len(LOCAL):
                self._head = data
                return
            self._head = None
            self._zip = Unzip(self._meter) if data.startswith(_ZIP_MAGIC) else None
        for part in self._zip.feed(data) if self._zip else (data,):
            yield from self._counted(self._gunzip.feed(part))

    def finish(self) -> Iterator[bytes]:
        """The end of the input: what was held back, or :class:`~rooflight.errors.Truncated`."""
        if self._zip:
            self._zip.finish()
        if self._head:
            yield from self._counted(self._gunzip.feed(self._head))
        yield from self._counted(self._gunzip.finish())

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._meter.unpacked(len(piece))
            yield piece


def unpacked(stream: IO[bytes], limits: Limits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """The plain bytes of a binary stream, in pieces of about 1 MiB."""
    unpacker = Unpacker(limits)
    while data := stream.read(CHUNK):
        yield from unpacker.feed(data)
    yield from unpacker.finish()


def unpacked_file(path: Path, limits: Limits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """As :func:`unpacked`, for a file; one that cannot be read is refused."""
    try:
        with path.open("rb") as stream:
            yield from unpacked(stream, limits)
    except OSError as e:
        reason = e.strerror or type(e).__name__
        raise Refused(
            f"cannot read the file: {reason.lower()}", where=str(path), hint="check the path"
        ) from e


class Checker:
    """Watches an upload as it streams: raises as soon as it is sure that it will not be accepted.

    It holds a few bytes, whatever the size.  What only a full parse can find is left to the analysis.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._unpacker = Unpacker(limits)
        self._head = b""  # until it tells how the document begins
        self._first = b""
        self._last = b""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes of the upload."""
        for piece in self._unpacker.feed(data):
            self._look(piece)

    def finish(self) -> None:
        """The upload has ended: refuse it unless it is whole."""
        for piece in self._unpacker.finish():
            self._look(piece)
        if not self._first:
            self._first = start_of(self._head)[:1]
        if not self._first:
            raise empty()
        # A bare array may lack its end (Chrome's array form); an object may not.
        if self._first == b"{" and self._last != b"}":
            raise Truncated(
                "the JSON is truncated: it ends in the middle of an object",
                where=f"byte {self._unpacker.bytes_out}",
                hint="the process was killed while it wrote, or the copy is incomplete",
            )

    def _look(self, piece: bytes) -> None:
        if not self._first:
            self._head += piece
            if len(self._head) >= HEAD_BYTES:
                # Space alone is held as one of it, however much there is.
                self._first, self._head = start_of(self._head)[:1], b" "
        tail = piece.rstrip(SPACE)
        if tail:
            self._last = tail[-1:]
