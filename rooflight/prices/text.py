"""Text of a file from outside, gzipped or not, in pieces that never fill the memory."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from rooflight.errors import Malformed, Refused, TooLarge, Truncated

#: No line of a price list is longer; one of AWS has about a thousand characters.
MAX_LINE = 1 << 20
_HEAD = 64
_GZIP = b"\x1f\x8b"
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Text(NamedTuple):
    """A text to be read once, and whether it begins as JSON does."""

    stream: TextIO
    is_json: bool


@contextmanager
def opened(path: Path) -> Iterator[Text]:
    """The file's text; bytes that are no text are replaced, line ends are kept as they are.

    Raises :class:`Refused` when it cannot be opened, :class:`Truncated` or :class:`Malformed` when its
    compression is broken, which may show only while it is read.
    """
    try:
        with path.open("rb") as raw:
            plain = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP) else raw
            head = plain.peek(_HEAD)[:_HEAD]
            encoding = _encoding(head)
            start = head.decode(encoding, "ignore").lstrip()[:1]
            yield Text(io.TextIOWrapper(plain, encoding, errors="replace", newline=""), start in ("{", "["))
    except EOFError as e:
        raise Truncated("the gzip data is truncated", where=path.name, hint="copy the file again") from e
    except (gzip.BadGzipFile, zlib.error) as e:
        raise Malformed(f"the gzip data is broken: {e}", where=path.name) from e
    except OSError as e:
        raise Refused(f"cannot read {path}: {e.strerror or e}") from e


def lines(stream: TextIO, name: str) -> Iterator[str]:
    """The lines of a text with their ends; one that is too long is refused by its number."""
    number = 1
    while line := stream.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith("\n"):
            raise TooLarge(f"a line is longer than {MAX_LINE:,} characters", where=f"{name}, line {number}")
        yield line
        number += 1


def _encoding(head: bytes) -> str:
    """UTF-8, unless a mark says UTF-16, as files written by Windows PowerShell do."""
    return next((name for bom, name in _BOMS.items() if head.startswith(bom)), "utf-8")
