"""A body on its way to the blob store: looked at while it streams, on disk before anything is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import PurePosixPath

from starlette.requests import ClientDisconnect

from app.blobs import Incoming
from app.problems import ServiceError
from app.text import clean
from rooflight.errors import Refused
from rooflight.readers.source import Checker, Limits

_BLOCK = 1 << 20
_DRAIN_BYTES = 64 << 20
_DRAIN_S = 10.0


class UnsupportedMedia(ServiceError):  # noqa: N818
    """A body of a kind that is not taken."""

    status = 415


async def receive(stream: AsyncIterator[bytes], upload: Incoming, limits: Limits) -> None:
    """Write the stream to ``upload``; :class:`Refused` as soon as it is sure not to be accepted."""
    checker = Checker(limits)

    def take(block: bytes) -> None:
        checker.feed(block)
        upload.write(block)

    def finish() -> None:
        checker.finish()
        upload.finish()

    try:
        async for block in _blocks(stream):
            await asyncio.to_thread(take, block)
        await asyncio.to_thread(finish)
    except Refused:
        await _drain(stream)
        raise


async def _blocks(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream in blocks of about a MiB: a hop to a thread for each is cheap, memory is bounded."""
    parts: list[bytes] = []
    size = 0
    async for part in stream:
        parts.append(part)
        size += len(part)
        if size >= _BLOCK:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


async def _drain(stream: AsyncIterator[bytes]) -> None:
    """Read on for a while: a client that still sends would see a broken connection and not our answer."""
    seen = 0
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for part in stream:
                seen += len(part)
                if seen > _DRAIN_BYTES:
                    return
    except (TimeoutError, ClientDisconnect):
        return


def shown_name(filename: str | None) -> str:
    """The file's name as it is shown: the last part of a path, at most 200 characters."""
    name = "".join(c for c in clean(filename or "") if c.isprintable()).replace("\\", "/")
    last = PurePosixPath(name).name[-200:]
    return last if last.strip(". ") else "trace.json"


def check_media(content_type: str | None) -> None:
    """Refuse what a form sends: the file itself is the body."""
    if content_type is not None and content_type.lower().startswith("multipart/"):
        raise UnsupportedMedia(
            "a multipart form is not taken here",
            where="header Content-Type",
            hint="send the file itself as the body: curl --data-binary @trace.json.gz",
        )
