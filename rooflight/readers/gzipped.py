"""Gzip of any number of members, as it streams in; what is no gzip passes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isal import isal_zlib

from rooflight.errors import Malformed, Truncated
from rooflight.readers.limits import Meter

MAGIC = b"\x1f\x8b"
#: The most that one step of inflating gives.
CHUNK = 1 << 20
#: What is inflated in one go: what follows the end of a member is copied, and members may be tiny.
_SLICE = 16 << 10
#: Pieces are put together up to this size, so that tiny members cost those who take them nothing.
_GATHER = 64 << 10
_WBITS = 31


class Gunzip:
    """Inflates what is fed, by its first bytes.  Memory is bounded by the piece fed."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._gzipped: bool | None = None
        self._head = b""
        self._member: Any = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The plain bytes that ``data`` adds."""
        if self._gzipped is None:
            data = self._head + data
            if len(data) < len(MAGIC):
                self._head = data
                return
            self._gzipped = data.startswith(MAGIC)
        yield from _gathered(self._inflate(data)) if self._gzipped else (data,)

    def finish(self) -> Iterator[bytes]:
        """The end of the input: what was held back, or :class:`Truncated`."""
        if self._gzipped is None and self._head:
            yield self._head
        if self._member is not None:
            raise Truncated(
                "the gzip data is truncated: its end or its CRC trailer never arrived",
                where=f"byte {self._meter.bytes_in} of the compressed file",
                hint="copy the file again, or write the trace again",
            )

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(data):
            part = data[at : at + _SLICE]
            if self._member is None:
                # Some writers pad the last member with zeros; anything else must be a member.
                start = part.lstrip(b"\0") if self._members else part
                at += len(part) - len(start)
                if not start:
                    continue
                if not start.startswith(MAGIC[: len(start)]):
                    raise self._damaged("what follows a member is no member")
                self._member, part = isal_zlib.decompressobj(wbits=_WBITS), data[at : at + _SLICE]
                self._members += 1
            at += len(part)
            yield from self._steps(part)
            if self._member.eof:
                at -= len(self._member.unused_data)
                self._member = None

    def _steps(self, part: bytes) -> Iterator[bytes]:
        """Everything that a slice of a member gives, a MiB at a time."""
        while part and not self._member.eof:
            try:
                yield self._member.decompress(part, CHUNK)
            except isal_zlib.error as e:  # type: ignore[misc]
                raise self._damaged(str(e)) from e
            part = self._member.unconsumed_tail

    def _damaged(self, how: str) -> Malformed:
        return Malformed(
            f"the gzip data is damaged: {how}",
            where=f"near byte {self._meter.bytes_in} of the compressed file",
            hint="copy the file again",
        )


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are worth a call."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= _GATHER:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
