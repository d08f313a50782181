"""The bytes of a document that are not read yet, in one buffer that is used again and again.

A fresh megabyte for every chunk costs more than parsing it: the system hands out each page anew.
"""

from __future__ import annotations

_OPEN, _CLOSE = ord("["), ord("]")


class Window:
    """A sliding view of a document; positions count from its first unread byte.

    One byte before the unread ones and one after them always exist, so that any stretch can be put in
    brackets where it lies.
    """

    def __init__(self, size: int) -> None:
        self.offset = 0  # of the first unread byte in the document
        self._buffer = bytearray(size)
        self._begin = self._end = 1

    def __len__(self) -> int:
        return self._end - self._begin

    def __bytes__(self) -> bytes:
        return bytes(memoryview(self._buffer)[self._begin : self._end])

    def append(self, piece: bytes) -> None:
        """Add the next bytes of the document."""
        kept, more = len(self), len(piece)
        if self._end + more >= len(self._buffer):
            self._buffer[1 : kept + 1] = self._buffer[self._begin : self._end]
            self._begin, self._end = 1, kept + 1
        if self._end + more >= len(self._buffer):
            # A new one, since what was decoded last may still look into the old one.
            self._buffer = self._buffer + bytes(more + len(self._buffer))
        self._buffer[self._end : self._end + more] = piece
        self._end += more

    def advance(self, n: int) -> None:
        """The first ``n`` bytes have been read."""
        self._begin += n
        self.offset += n

    def drop(self, spaces: bytes, sign: bytes) -> None:
        """Pass one ``sign``, with the spaces before it, where it comes next."""
        at = self._begin
        while at < self._end and self._buffer[at] in spaces:
            at += 1
        if self._buffer.startswith(sign, at, self._end):
            self.advance(at + 1 - self._begin)

    def rfind(self, sign: bytes, end: int) -> int:
        """Where ``sign`` stands last before ``end``, -1 if nowhere."""
        return max(self._buffer.rfind(sign, self._begin, min(self._begin + end, self._end)) - self._begin, -1)

    def end_of(self, sign: bytes, before: int, spaces: bytes) -> int | None:
        """The end of ``sign`` when it is what stands before ``before``, spaces aside."""
        at = before
        while at > 0 and self._buffer[self._begin + at - 1] in spaces:
            at -= 1
        return at if at > 0 and self._buffer.startswith(sign, self._begin + at - 1) else None

    def slice(self, begin: int, end: int) -> bytes:
        """A copy of some bytes."""
        return bytes(memoryview(self._buffer)[self._begin + max(begin, 0) : self._begin + end])

    def bracketed(self, end: int, *, closed: bool = True) -> Bracketed:
        """The first ``end`` bytes between brackets, or after the opening one only."""
        return Bracketed(self._buffer, self._begin - 1, self._begin + end, closed)


class Bracketed:
    """Puts brackets around a stretch of a buffer while it is used, and takes them off again."""

    def __init__(self, buffer: bytearray, before: int, after: int, closed: bool) -> None:
        self._buffer, self._before, self._after, self._closed = buffer, before, after, closed

    def __enter__(self) -> memoryview:
        buffer = self._buffer
        self._hidden = buffer[self._before], buffer[self._after]
        buffer[self._before] = _OPEN
        if self._closed:
            buffer[self._after] = _CLOSE
        return memoryview(buffer)[self._before : self._after + self._closed]

    def __exit__(self, *_: object) -> None:
        self._buffer[self._before], self._buffer[self._after] = self._hidden
