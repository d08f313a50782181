"""What lies around the events of a document: how it begins, and its keys of metadata."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import chain
from typing import Any

from rooflight.errors import Malformed, NotATrace, Truncated
from rooflight.readers import number
from rooflight.readers.repair import MAX_REPAIRED, repairs

SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
#: So many bytes tell how a document begins.
HEAD_BYTES = 4
_WIDE = {
    "UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"\0\0\0"),
    "UTF-16": (b"\xff\xfe", b"\xfe\xff", b"{\0", b"[\0", b"\0{", b"\0["),
}
#: What a number, a word or an escape may look like that the end of the text has cut.
_CUT_TOKEN = re.compile(r"(?:-?[\d.eE+-]*|\\?u?[0-9a-fA-F]{0,4})")
_HALF = re.compile("[\udc80-\udcff]")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


def start_of(text: bytes) -> bytes:
    """The document without a byte order mark and leading space; b"" when there is nothing else.

    Raises :class:`NotATrace` when it begins as no JSON object or array does.
    """
    for encoding, heads in _WIDE.items():
        if text.startswith(heads):
            raise NotATrace(
                f"not a trace: the file is {encoding}, and JSON is UTF-8",
                where="byte 0",
                hint=f"Windows PowerShell writes so with '>'; "
                f"change it by: iconv -f {encoding} -t UTF-8 FILE > trace.json",
            )
    start = text.removeprefix(_BOM).lstrip(SPACE)
    if start[:1] not in (b"", b"{", b"["):
        raise NotATrace(
            "not a trace: the file is no JSON object or array",
            where="byte 0",
            hint="send the .json or .json.gz that the torch profiler wrote",
        )
    return start


def empty() -> NotATrace:
    """The refusal of a file with nothing in it."""
    return NotATrace("the file is empty", hint="was the profiler stopped before the export?")


def read_object(text: bytes, offset: int) -> tuple[dict[str, Any], Counter[str]]:
    """The keys of an object that lies at byte ``offset``, and what was mended in it.

    It is read tolerantly: NaN, control characters, numbers of any length; what is no UTF-8 is kept as
    half surrogates.
    """
    whole = text.decode("utf-8", "surrogateescape")
    errors: list[ValueError | RecursionError] = []
    mended = repairs(whole) if len(text) <= MAX_REPAIRED else ()
    for reading, kinds in chain([(whole, Counter[str]())], mended):
        try:
            doc = json.loads(reading, strict=False, parse_int=number.integer)
        except (ValueError, RecursionError) as e:
            errors.append(e)
            if _is_cut(reading, e):
                raise Truncated(
                    "the JSON is truncated: it ends in its metadata", where=f"byte {offset + len(text)}"
                ) from e
        else:
            return (doc if isinstance(doc, dict) else {}), kinds + not_utf8(whole)
    raise _malformed(whole, errors[0], offset)


def not_utf8(text: str) -> Counter[str]:
    """How many bytes of a decoded text were no UTF-8, as a kind of repair."""
    return +Counter({"bytes that are no UTF-8": len(_HALF.findall(text))})


def _is_cut(text: str, error: Exception) -> bool:
    """Whether nothing is wrong with the text but that it stops."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = text[error.pos :].strip()
    return (
        error.msg.startswith("Unterminated string")
        or any(word.startswith(rest) for word in _WORDS)
        or _CUT_TOKEN.fullmatch(rest) is not None
    )


def _malformed(text: str, error: Exception, offset: int) -> Malformed:
    if isinstance(error, json.JSONDecodeError):
        how, at = error.msg[:1].lower() + error.msg[1:], error.pos
    else:
        how, at = "nested too deeply", 0
    place = offset + len(text[:at].encode("utf-8", "surrogateescape"))
    return Malformed(f"the JSON is malformed: {how}", where=f"byte {place}", hint="write the trace again")
