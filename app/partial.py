"""Traces that arrive in parts: a line that breaks costs one part, and the sender goes on where it was.

A trace is named by the SHA-256 of its bytes, so that whoever sends it again finds what is there already.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import StringConstraints

from app.problems import Conflict
from rooflight.errors import Malformed, TooLarge

MOST_PART_BYTES = 64 << 20
_CHUNK = 1 << 20
_DIGEST = re.compile(r"sha-256=:([A-Za-z0-9+/=]{44}):")

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Part:
    """``data`` belongs at byte ``offset`` of a trace of ``size`` bytes."""

    offset: int
    size: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class Partial:
    """The parts of one trace of one run that are here."""

    path: Path
    sha256: str

    def offset(self) -> int:
        """How many bytes are here, from the first on."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def add(self, part: Part) -> int:
        """Put a part where it belongs; how many bytes are here then, on the disk for good.

        One that is here already changes nothing; :class:`Conflict` where it would leave a hole or differs.
        """
        with self._alone() as file:
            here = os.fstat(file.fileno()).st_size
            if part.offset > here or part.end > part.size:
                raise _gap(here)
            file.seek(part.offset)
            if file.read(here - part.offset)[: len(part.data)] != part.data[: here - part.offset]:
                raise _gap(here)
            file.seek(here)
            file.write(part.data[here - part.offset :])
            file.flush()
            os.fsync(file.fileno())
            return max(here, part.end)

    def check(self) -> None:
        """The whole is what its name says, or :class:`Malformed`."""
        digest = hashlib.sha256()
        for chunk in self._chunks():
            digest.update(chunk)
        if digest.hexdigest() != self.sha256:
            hint = "send it again from its start"
            raise Malformed("the parts are not the trace of this SHA-256", where=self.sha256, hint=hint)

    async def stream(self) -> AsyncIterator[bytes]:
        """The bytes, as a request's body would bring them."""
        for chunk in self._chunks():
            yield chunk

    def remove(self) -> None:
        """Forget what is here."""
        self.path.unlink(missing_ok=True)

    def _chunks(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    @contextmanager
    def _alone(self) -> Iterator[BinaryIO]:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def checked(data: bytes, content_digest: str | None) -> bytes:
    """The body of a part; :class:`Malformed` when it is not what its digest says (RFC 9530)."""
    if len(data) > MOST_PART_BYTES:
        raise TooLarge(f"a part has at most {MOST_PART_BYTES} bytes", where="the body")
    if not data:
        raise Malformed("a part has at least one byte", where="the body")
    if content_digest is not None and hashlib.sha256(data).digest() != _digest(content_digest):
        hint = "send this part again"
        raise Malformed(
            "the part is damaged: it is not what Content-Digest says", where="the body", hint=hint
        )
    return data


def _digest(header: str) -> bytes:
    found = _DIGEST.search(header)
    try:
        return base64.b64decode(found[1], validate=True) if found else b""
    except binascii.Error:
        return b""


def _gap(here: int) -> Conflict:
    title = f"{here} bytes of this trace are here, and the part does not follow them"
    return Conflict(title, where="offset", hint=f"go on at offset={here}")
