"""Bytes in, plain bytes out: unpacking with limits, for files and for uploads that stream in.

:class:`Unpacker` inflates gzip (any number of members) and passes everything else through; it refuses
what is too large while it inflates, never after.  :class:`Checker` watches an upload without keeping
it: the archive must be whole and its JSON must begin and end as one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from isal import isal_zlib

from rooflight.errors import Malformed, NotATrace, Refused, TooLarge, Truncated

CHUNK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 31
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is accepted: unpacked bytes, unpacked over packed bytes, and rows.

    Real traces compress 10 to 40 times; the ratio only counts beyond ``ratio_floor`` bytes, since a
    short file of equal rows is no attack.
    """

    max_bytes: int = 8 << 30
    max_ratio: int = 200
    ratio_floor: int = 16 << 20
    max_events: int = 100_000_000


DEFAULT_LIMITS = Limits()


class Unpacker:
    """Inflates what is fed; a plain input passes through.  Memory is bounded by the chunk fed."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.bytes_in = 0
        self.bytes_out = 0
        self.gzipped: bool | None = None
        self._head = b""
        self._member: Any = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The plain bytes that ``data`` adds."""
        self.bytes_in += len(data)
        if self.gzipped is None:
            data = self._head + data
            if len(data) < len(GZIP_MAGIC):
                self._head = data
                return
            self.gzipped = data.startswith(GZIP_MAGIC)
        for piece in self._inflate(data) if self.gzipped else (data,):
            yield self._counted(piece)

    def finish(self) -> Iterator[bytes]:
        """The end of the input: what was held back, or :class:`Truncated`."""
        if self.gzipped is None and self._head:
            self.gzipped = False
            yield self._counted(self._head)
        if self.gzipped and self._member is not None:
            raise Truncated(
                "the gzip data is truncated: its end or its CRC trailer never arrived",
                where=f"byte {self.bytes_in} of the compressed file",
                hint="copy the file again, or write the trace again",
            )

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member is None:
                # Some writers pad the last member with zeros; anything else must be a member.
                data = data.lstrip(b"\0") if self._members else data
                if not data:
                    return
                if not data.startswith(GZIP_MAGIC[: len(data)]):
                    raise self._damaged("what follows a member is no member")
                self._member = isal_zlib.decompressobj(wbits=_GZIP_WBITS)
                self._members += 1
            yield self._step(self._member, data)
            if self._member.eof:
                data, self._member = self._member.unused_data, None
            else:
                data = self._member.unconsumed_tail

    def _step(self, member: Any, data: bytes) -> bytes:
        try:
            return bytes(member.decompress(data, CHUNK))
        except isal_zlib.error as e:  # type: ignore[misc]
            raise self._damaged(str(e)) from e

    def _damaged(self, how: str) -> Malformed:
        return Malformed(
            f"the gzip data is damaged: {how}",
            where=f"near byte {self.bytes_in} of the compressed file",
            hint="copy the file again",
        )

    def _counted(self, piece: bytes) -> bytes:
        self.bytes_out += len(piece)
        limits = self.limits
        if self.bytes_out > limits.max_bytes:
            raise TooLarge(
                f"too large: more than the limit of {limits.max_bytes} bytes when unpacked",
                where=f"after {self.bytes_in} bytes of the file",
                hint="record fewer steps, or raise the limit",
            )
        if self.bytes_out > max(limits.ratio_floor, limits.max_ratio * self.bytes_in):
            raise TooLarge(
                f"too large: it unpacks to over {limits.max_ratio} times its size, which exceeds the limit",
                where=f"after {self.bytes_in} bytes of the file",
                hint="a trace compresses 10 to 40 times; this is no trace, or not one that we open",
            )
        return piece


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
        self._head = b""  # a byte order mark may come in pieces
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
            raise NotATrace("the file is empty", hint="was the profiler stopped before the export?")
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
            if _BOM.startswith(self._head):
                return
            start = self._head.removeprefix(_BOM).lstrip(_SPACE)
            self._head, self._first = b" ", start[:1]
            if self._first and self._first not in (b"{", b"["):
                raise NotATrace(
                    "not a trace: the file is no JSON object or array",
                    where="byte 0",
                    hint="send the .json or .json.gz that the profiler wrote",
                )
        tail = piece.rstrip(_SPACE)
        if tail:
            self._last = tail[-1:]
