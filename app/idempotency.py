"""A POST under an Idempotency-Key happens once, however often it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi.responses import JSONResponse
from sqlalchemy import select, update

from app.db import WriteSession, insert_new
from app.models import IdempotencyKey, utcnow
from app.problems import Conflict


@dataclass(frozen=True)
class Outcome:
    """What a POST is answered with: a status and a body of plain JSON types."""

    status: int
    answer: dict[str, Any]

    def response(self, **headers: str) -> JSONResponse:
        """As an HTTP answer."""
        return JSONResponse(self.answer, self.status, headers=headers)


async def once(
    session: WriteSession, path: str, key: str | None, digest: str, act: Callable[[], Awaitable[Outcome]]
) -> Outcome:
    """The outcome of ``act``, or that of the first request with the same path, key and body, as 200.

    The key is reserved in the transaction of the act itself: of several at once one acts and the others
    wait for it, and a failed act leaves no key.  :class:`Conflict` when the body differs.
    """
    if key is None:
        return await act()
    scope = hashlib.sha256(f"{path}\0{key}".encode("utf-8", "replace")).hexdigest()
    new = await insert_new(
        session, IdempotencyKey, scope=scope, body_sha256=digest, status=0, answer={}, created_at=utcnow()
    )
    if not new:
        return await _replayed(session, scope, digest)
    outcome = await act()
    row = update(IdempotencyKey).where(IdempotencyKey.scope == scope)
    await session.execute(row.values(status=outcome.status, answer=outcome.answer))
    return outcome


async def _replayed(session: WriteSession, scope: str, digest: str) -> Outcome:
    found = await session.scalar(select(IdempotencyKey).where(IdempotencyKey.scope == scope))
    if found is None or found.body_sha256 != digest:
        raise Conflict(
            "this Idempotency-Key was used with another body",
            where="header Idempotency-Key",
            hint="send a new key for a new request",
        )
    return Outcome(200, found.answer)


def digest_of(body: bytes, *more: str) -> str:
    """The hash that tells one request from another: of its body and of what else decides its effect."""
    tail = "".join(f"\0{text}" for text in more).encode("utf-8", "replace")
    return hashlib.sha256(body + tail).hexdigest()
