"""Bodies with Content-Encoding: gzip, inflated as they stream in, to the limit of any other body."""

from __future__ import annotations

import zlib

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import answer
from app.problems import problem
from app.settings import Settings


class Inflate:
    """ASGI middleware.  A trace is not touched: what a trace is packed in is the reader's affair."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app, self._limit = app, settings.body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        encoding = _encoding(scope)
        if encoding in ("", "identity"):
            await self._app(scope, receive, send)
        elif encoding in ("gzip", "x-gzip"):
            await self._app(scope, _inflated(receive, self._limit), send)
        else:
            told = problem(
                "Encoding", "the encoding of the body is not known", 415, "header Content-Encoding"
            )
            told.hint = "send gzip, or the body as it is"
            await answer(told)(scope, receive, send)


def _encoding(scope: Scope) -> str:
    if scope["type"] != "http" or scope["path"].endswith("/traces"):
        return ""
    return Headers(scope=scope).get("content-encoding", "").strip().lower()


def _inflated(receive: Receive, limit: int) -> Receive:
    stream = zlib.decompressobj(wbits=31)
    seen = 0

    async def inflated() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] != "http.request":
            return message
        try:
            data = stream.decompress(message.get("body", b""), limit - seen + 1)
        except zlib.error as e:
            # The one exception that FastAPI lets through while it reads a body.
            raise HTTPException(400, f"the body is not gzip: {e}") from e
        seen += len(data)
        if seen > limit:
            raise HTTPException(413, f"too large: the inflated body exceeds the limit of {limit} bytes")
        if stream.unused_data or (not message.get("more_body", False) and not stream.eof):
            raise HTTPException(400, "the body is not one gzip stream: it is cut off, or goes on")
        return {**message, "body": data}

    return inflated
