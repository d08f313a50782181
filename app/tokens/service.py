"""Bearer tokens: ``rfl_<prefix>_<secret>``, shown once, kept as a hash.

The secret is 256 random bits, so a plain SHA-256 is as good as a slow hash and costs no time per request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select, update

from app.db import Database, ReadSession, WriteSession
from app.models import Token, utcnow

SCOPES = ("read", "write", "admin")
_FORM = re.compile(r"rfl_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_USED_EVERY = timedelta(minutes=1)  # last_used_at is not written more often than this
_NOBODY = "0" * 64


@dataclass(frozen=True)
class Minted:
    """A fresh token: ``text`` is the only copy of the secret."""

    text: str
    row: Token


async def mint(session: WriteSession, name: str, scopes: list[str], project_id: str | None = None) -> Minted:
    """Create a token; ``scopes`` out of read, write, admin, each of which includes those before it."""
    if not scopes or not set(scopes) <= set(SCOPES):
        raise ValueError(f"scopes must be one or more of {', '.join(SCOPES)}")
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = Token(
        prefix=prefix,
        secret_sha256=_hash(secret),
        name=name,
        scopes=" ".join(s for s in SCOPES if s in scopes),
        project_id=project_id,
    )
    session.add(row)
    await session.flush()
    return Minted(f"rfl_{prefix}_{secret}", row)


async def verify(database: Database, text: str) -> Token | None:
    """The token's row, or ``None`` when it is unknown, wrong or revoked."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    async with database.read() as session:
        row = await session.scalar(select(Token).where(Token.prefix == form[1]))
    # An unknown prefix takes the same comparison as a wrong secret.
    good = hmac.compare_digest(row.secret_sha256 if row else _NOBODY, _hash(form[2]))
    if row is None or not good or row.revoked_at is not None:
        return None
    await _mark_used(database, row)
    return row


async def by_id(database: Database, token_id: str) -> Token | None:
    """The token of a signed session, unless it was revoked meanwhile."""
    async with database.read() as session:
        row = await session.get(Token, token_id)
    return row if row is not None and row.revoked_at is None else None


async def revoke(session: WriteSession, prefix: str) -> bool:
    """Revoke by prefix; false when there is no such token."""
    ended = update(Token).where(Token.prefix == prefix).values(revoked_at=utcnow()).returning(Token.id)
    return await session.scalar(ended) is not None


async def listing(session: ReadSession) -> list[Token]:
    """Every token, oldest first."""
    return list(await session.scalars(select(Token).order_by(Token.created_at, Token.prefix)))


async def any_valid(session: ReadSession) -> bool:
    """Whether a token exists that was not revoked."""
    return bool(
        await session.scalar(select(func.count()).select_from(Token).where(Token.revoked_at.is_(None)))
    )


async def _mark_used(database: Database, row: Token) -> None:
    now = utcnow()
    if row.last_used_at is not None and now - row.last_used_at < _USED_EVERY:
        return
    async with database.write() as session:
        await session.execute(update(Token).where(Token.id == row.id).values(last_used_at=now))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
