"""The event array of a trace as a stream of chunks that each decode on their own.

A document is ``{meta, "traceEvents": [events], meta}`` or a bare array of events.  It is cut at event
borders every megabyte or so; a cut that falls inside a string or a nested value does not decode, and
the one before it is tried.  Nothing of the size of the file is ever held.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from rooflight.errors import Malformed, NotATrace, TooLarge, Truncated
from rooflight.readers.envelope import HEAD_BYTES, SPACE, empty, read_object, start_of
from rooflight.readers.repair import MAX_REPAIRED
from rooflight.readers.window import Window

#: Small enough for the rows of a chunk to stay in the processor's cache while they become columns.
CHUNK = 1 << 20
#: One event, or the metadata before the first one, never comes near this.
MAX_UNCUT = 64 << 20
#: How many borders are tried around a place that is broken.
MAX_TRIES = 16
#: ``"traceEvents": [`` with all the space that is looked through for it.
_LONGEST_KEY = 1024
_BYTE = re.compile(r"\(byte (\d+)\)")


class Decode(Protocol):
    """Turns the text of a JSON array into events and keeps them; raises ``msgspec.DecodeError``.

    The text is only valid during the call.
    """

    def __call__(self, data: memoryview, *, last_resort: bool = False) -> None: ...


class EventStream:
    """Reads a document, giving each chunk of events to ``decode``.

    After :meth:`run`, ``meta`` holds the document's other keys, ``unterminated`` says that a bare
    array lacked its end, ``cut_off`` that a salvaged document lacked its own, ``repaired`` what was
    mended in the metadata, counted by kind.
    """

    #: The array that is read.
    key = "traceEvents"

    def __init__(self, pieces: Iterator[bytes], decode: Decode, *, salvage: bool = False) -> None:
        self.meta: dict[str, Any] = {}
        self.unterminated = False
        self.cut_off: str | None = None
        self.repaired: Counter[str] = Counter()
        self._pieces = pieces
        self._decode = decode
        self._salvage = salvage
        self._window = Window(3 * CHUNK)
        self._ended = False
        self._unmended: Exception | None = None  # why what is pending could not even be mended

    def run(self) -> None:
        """Read to the end of the document."""
        self._open()
        try:
            self._read_events()
        except (Truncated, Malformed) as e:
            if not self._salvage:
                raise
            self.cut_off = str(e)

    @property
    def _pending(self) -> bytes:
        """A copy of what is not read yet, for the roads that are not taken once a megabyte."""
        return bytes(self._window)

    def _fill(self) -> None:
        size = 0
        while size < CHUNK and not self._ended:
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
            else:
                self._window.append(piece)
                size += len(piece)

    # -- the document before its first event -------------------------------------------------------

    def _open(self) -> None:
        self._fill()
        while len(self._window) < HEAD_BYTES and not self._ended:
            self._fill()
        text = self._pending
        start = start_of(text)
        if not start:
            raise empty()
        self._bare = start.startswith(b"[")
        self._window.advance(len(text) - len(start))
        if self._bare:
            self._window.advance(1)
        else:
            self._find_events()

    def _find_events(self) -> None:
        key = re.compile(rb'"%s"\s*:\s*\[' % self.key.encode())
        begin = tries = 0
        while True:
            text = self._pending
            found = key.search(text, begin)
            if found is None:
                if self._ended:
                    raise self._no_events(text)
                self._guard()
                self._fill()
                begin = max(begin, len(text) - _LONGEST_KEY)
                continue
            try:
                self._note(text[: found.start()] + b'"%s":0}' % self.key.encode(), self._window.offset)
            except Truncated:
                # A key of that name within the metadata: what comes before it is only a beginning.
                begin, tries = found.end(), tries + 1
                if tries == MAX_TRIES:
                    raise self._too_many_keys() from None
                continue
            self._window.advance(found.end())
            return

    def _too_many_keys(self) -> Malformed:
        return Malformed(
            f"the JSON is malformed: {MAX_TRIES} keys {self.key} lie within its metadata",
            where=f"byte {self._window.offset}",
            hint="send the .json or .json.gz that the torch profiler wrote",
        )

    def _note(self, text: bytes, offset: int) -> dict[str, Any]:
        """Keep the keys of an object of metadata."""
        doc, kinds = read_object(text, offset)
        self.meta.update(doc)
        self.repaired += kinds
        return doc

    def _no_events(self, text: bytes) -> NotATrace | Truncated | Malformed:
        try:
            doc, _ = read_object(text, self._window.offset)
        except (Truncated, Malformed) as e:
            return e
        found = "traceEvents" in doc
        return NotATrace(
            "not a trace: traceEvents is no array" if found else "not a trace: it has no traceEvents",
            hint="send the .json or .json.gz that the torch profiler wrote",
        )

    # -- the events --------------------------------------------------------------------------------

    def _read_events(self) -> None:
        while not self._ended:
            end = self._take(self._last_border(len(self._window)))
            if end is not None:
                self._close(end)
                return
            self._fill()
        self._finish()

    def _take(self, cut: int) -> int | None:
        """Decode up to the best cut at or before ``cut``; the array's end when it lies there."""
        for _ in range(MAX_TRIES):
            if cut <= 0:
                break
            failure = self._try(cut)
            if failure is None:
                self._pass(cut)
                return None
            if failure.end is not None:
                return failure.end
            cut = self._last_border(cut - 1 if failure.at is None else min(cut - 1, failure.at))
        # Nothing decodes: either the first event is not complete yet, or the text is broken.
        size = len(self._window)
        if size >= MAX_UNCUT:
            raise TooLarge(
                f"too large: an event passes the limit of {MAX_UNCUT >> 20} MiB",
                where=f"byte {self._window.offset}",
            )
        failure = self._try(size, closed=False)
        if failure is None:
            # It held the array's own bracket; the events before it are taken.
            self._window.advance(len(self._pending.rstrip(SPACE)) - 1)
            return 1
        if failure.end is None and not failure.truncated:
            self._resort_after(failure)
        return failure.end

    def _resort_after(self, failure: _Failure) -> None:
        """Read leniently up to a border beyond the place that is broken, the last one that works."""
        borders = 0
        cut = self._last_border(len(self._window))
        while cut > (failure.at or 0) and borders < MAX_TRIES:
            if self._resorted(cut):
                self._pass(cut)
                return
            cut, borders = self._last_border(cut - 1), borders + 1
        if borders:
            raise self._malformed(failure.error)

    def _pass(self, cut: int) -> None:
        """The events before ``cut`` are read, and so is the comma after them."""
        self._window.advance(cut)
        self._window.drop(SPACE, b",")
        self._unmended = None

    def _try(self, end: int, *, closed: bool = True) -> _Failure | None:
        """Decode the first ``end`` bytes as an array that ends there, or that brings its own end."""
        try:
            with self._window.bracketed(end, closed=closed) as text:
                self._decode(text)
        except (msgspec.DecodeError, RecursionError) as e:
            return _Failure(e, self._window)
        return None

    def _resorted(self, end: int) -> bool:
        """Decode the first ``end`` bytes leniently, if that can be done."""
        if end > MAX_REPAIRED:
            return False
        try:
            with self._window.bracketed(end) as text:
                self._decode(text, last_resort=True)
        except (msgspec.DecodeError, ValueError, RecursionError) as e:
            self._unmended = self._unmended or e
            return False
        return True

    def _finish(self) -> None:
        """No more bytes will come: the array ends here, or the document is cut off."""
        text = self._pending.rstrip(SPACE)
        end = len(text.rstrip(b"," + SPACE))
        failure = self._try(end)
        if failure is None:
            self._end_without_bracket(text)
        elif failure.end is not None:
            self._close(failure.end)
        elif self._resorted(end):
            self._end_without_bracket(text)
        elif (bracket := next(filter(self._resorted, _brackets(text)), None)) is not None:
            self._window.advance(bracket + 1)
            self._close_meta()
        else:
            self._take_whole_events()
            raise self._broken_off()

    def _take_whole_events(self) -> None:
        left = -1
        while len(self._window) != left:
            left = len(self._window)
            self._take(self._last_border(left))

    def _broken_off(self) -> Truncated | Malformed:
        """What is wrong with the event that the document ends in."""
        text = self._pending.rstrip(SPACE)
        failure = self._try(len(text), closed=False)
        if failure is None or failure.truncated or not text.endswith((b"}", b"]")):
            return self._truncated("it ends in the middle of an event")
        return self._malformed(failure.error)

    def _end_without_bracket(self, text: bytes) -> None:
        if not self._bare:
            raise self._truncated(f"the {self.key} array has no end")
        self.unterminated = bool(text) or self._window.offset > 0
        self._window.advance(len(self._window))

    def _close(self, end: int) -> None:
        """The array ends at byte ``end`` of the window: decode it and read the rest."""
        failure = self._try(end - 1)
        if failure is not None and not self._resorted(end - 1):
            raise self._malformed(failure.error)
        self._window.advance(end)
        self._close_meta()

    def _close_meta(self) -> None:
        while not self._ended:
            self._guard()
            self._fill()
        text = self._pending.rstrip(SPACE)
        rest = text.lstrip(SPACE)
        if self._bare and rest:
            raise self._follows("text follows the end of the array")
        if not self._bare:
            rest = rest.removeprefix(b",")
            # The brace that opens the object stands for the byte before it.
            after = self._note(b"{" + rest, self._window.offset + len(text) - len(rest) - 1)
            if self.key in after:
                raise self._follows(f"a second {self.key} follows the first")

    def _follows(self, what: str) -> Malformed:
        return Malformed(
            f"the JSON is malformed: {what}",
            where=f"byte {self._window.offset}",
            hint="if several ranks wrote one path, give each its own file",
        )

    def _last_border(self, before: int) -> int:
        """The end of the last ``}`` before position ``before`` that a comma and a ``{`` follow; 0 if none."""
        window = self._window
        while (brace := window.rfind(b"{", before)) > 0:
            head = window.slice(brace - 64, brace).rstrip(SPACE)
            if head.endswith(b",") and head[:-1].rstrip(SPACE).endswith(b"}"):
                return window.rfind(b"}", brace) + 1
            before = brace
        return 0

    def _truncated(self, how: str) -> Truncated:
        return Truncated(
            f"the JSON is truncated: {how}",
            where=f"byte {self._window.offset + len(self._window)}",
            hint="the process was killed while it wrote, or the copy is incomplete; "
            "--salvage reads what is there",
        )

    def _guard(self) -> None:
        if len(self._window) >= MAX_UNCUT:
            raise TooLarge(
                f"too large: the metadata passes the limit of {MAX_UNCUT >> 20} MiB",
                where=f"byte {self._window.offset}",
            )

    def _malformed(self, error: Exception) -> Malformed:
        if _position(error) is None:
            # The strict decoder met something that can be mended, so that is not what is wrong.
            error = self._unmended or error
        at = _position(error)
        where = f"byte {self._window.offset + max(0, (at or 0) - 1)}"
        return Malformed(
            f"the JSON is malformed: {_reason(error)}",
            where=where,
            hint="write the trace again; if several ranks wrote one path, give each its own file",
        )


class _Failure:
    """Why the head of a window did not decode: ``end`` is the array's end when text follows it."""

    def __init__(self, error: Exception, window: Window) -> None:
        self.error = error
        message, at = str(error), _position(error)
        self.truncated = "truncated" in message or "unterminated string" in message
        # Positions count the bracket that was put before the text.
        self.at = None if at is None else at - 1
        self.end: int | None = None
        if "trailing characters" in message and at is not None:
            # The position is one past the first byte that follows the array, spaces skipped.
            self.end = window.end_of(b"]", at - 2, SPACE)


def _position(error: Exception) -> int | None:
    found = _BYTE.search(str(error))
    if found:
        return int(found[1])
    at = getattr(error, "pos", None)
    return at if isinstance(at, int) else None


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return _BYTE.sub("", str(error).removeprefix("JSON is malformed: ")).strip()


def _brackets(text: bytes) -> Iterator[int]:
    """Where a broken array may end, last first: a ``]`` after an object, few of which are metadata."""
    end = len(text)
    for _ in range(MAX_TRIES):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            return
        if text[max(0, end - 64) : end].rstrip(SPACE).endswith(b"}"):
            yield end
