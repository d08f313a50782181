"""A JSON text of any size, member by member: only one member is in memory at a time.

Numbers stay the text that was written, so that an amount of money keeps its digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from rooflight.errors import Malformed, TooLarge, Truncated

Path = tuple[str | int, ...]
#: Characters of one member that is not entered; a page of Azure has less than one million.
MAX_VALUE = 1 << 23
_CHUNK = 1 << 18
_SPACE = re.compile(r"[ \t\r\n]*")
#: A token that the end of the buffer cuts fails within so many characters of it.
_TOKEN = 16
_SUFFIX = 2
#: What a word, a number or an escape may look like that the end of the text has cut.
_CUT = re.compile(r"t(ru?)?|f(al?|als)?|n(ul?)?|N(a)?|-?|-?I\w*|\\?u?[0-9a-fA-F]{0,4}")


def walk(stream: TextIO, name: str, enter: Callable[[Path], bool]) -> Iterator[tuple[Path, Any]]:
    """Path and value of each member, in order; a container is entered where ``enter`` says so of its path.

    The text may hold several documents, one after another.  Raises :class:`Malformed`,
    :class:`Truncated` or :class:`TooLarge`, naming the character.
    """
    text = _Text(stream, name)
    while text.next():
        yield from _members(text, (), enter)


def _members(text: _Text, path: Path, enter: Callable[[Path], bool]) -> Iterator[tuple[Path, Any]]:
    opening = text.next()
    if opening not in ("{", "[") or not enter(path):
        yield path, text.value()
        return
    text.take(opening)
    closing, index = ("}" if opening == "{" else "]"), 0
    more = text.next() != closing
    while more:
        yield from _members(text, (*path, text.key() if opening == "{" else index), enter)
        index += 1
        more = text.next() == ","
        if more:
            text.take(",")
    text.take(closing)


class _Text:
    """What is read of the text and not yet used."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._decode = json.JSONDecoder(
            parse_float=str, parse_int=str, parse_constant=str, strict=False
        ).raw_decode
        self._buffer, self._at, self._before, self._ended = "", 0, 0, False

    def next(self) -> str:
        """The next character that is no space, without taking it; empty at the end."""
        while True:
            found = _SPACE.match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._buffer) or not self._fill():
                return self._buffer[self._at : self._at + 1]

    def take(self, wanted: str) -> None:
        """Pass ``wanted``, which must come next."""
        if self.next() != wanted:
            raise self.malformed(f"{wanted} is missing")
        self._at += 1

    def key(self) -> str:
        """The name of a member, with the colon behind it."""
        if self.next() != '"':
            raise self.malformed("the name of a member is missing")
        name = str(self.value())
        self.take(":")
        return name

    def value(self) -> Any:
        """The value that comes next, whole."""
        self.next()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as e:
                self._judge(e)
            except RecursionError:
                raise self.malformed("it is nested too deeply") from None
            else:
                # At the end of the buffer this may be the beginning of a longer number ("1" of "1e+5").
                if end < len(self._buffer) - _SUFFIX or not self._fill():
                    self._at = end
                    return value
            if len(self._buffer) - self._at > MAX_VALUE:
                raise TooLarge(f"a member is longer than {MAX_VALUE:,} characters", where=self._where())

    def _judge(self, error: json.JSONDecodeError) -> None:
        """Read on if the text only stops here."""
        cut = error.msg.startswith("Unterminated string") or error.pos > len(self._buffer) - _TOKEN
        if not cut or not self._fill():
            self._at = error.pos
            if error.msg.startswith("Unterminated string") or _CUT.fullmatch(self._buffer, error.pos):
                raise self._truncated()
            raise self.malformed(error.msg[:1].lower() + error.msg[1:])

    def _fill(self) -> bool:
        """Read on, by more the longer the member at hand; false at the end, which leaves all in its place."""
        rest = len(self._buffer) - self._at
        more = "" if self._ended else self._stream.read(max(_CHUNK, rest))
        if not more:
            self._ended = True
            return False
        self._before += self._at
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        return True

    def _where(self) -> str:
        return f"{self._name}, character {self._before + self._at:,}"

    def _truncated(self) -> Truncated:
        return Truncated("the JSON ends before its end", where=self._where(), hint="fetch the file again")

    def malformed(self, what: str) -> Malformed | Truncated:
        """The error of what comes next."""
        if self._at >= len(self._buffer):
            return self._truncated()
        return Malformed(f"the JSON is malformed: {what}", where=self._where())
